package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The body behind /bytes/N repeats after so many bytes.
const period = 1_048_573

// makeBlock makes one period: the top byte of x -> x*0xd1342543de82ef95 + 1 modulo 2^64.
func makeBlock() []byte {
	block := make([]byte, period)
	x := uint64(0x9e3779b97f4a7c15)
	for i := range block {
		x = x*0xd1342543de82ef95 + 1
		block[i] = byte(x >> 56)
	}
	return block
}

// writeBody writes the first n bytes of the endless body.
func writeBody(w io.Writer, block []byte, n int64) error {
	for n > 0 {
		piece := block[:min(n, period)]
		if _, err := w.Write(piece); err != nil {
			return err
		}
		n -= int64(len(piece))
	}
	return nil
}

// parseSize reads 10M, 1Ki, 77.
func parseSize(text string) (int64, error) {
	units := []struct {
		suffix string
		factor int64
	}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"", 1}}
	for _, unit := range units {
		if digits, found := strings.CutSuffix(text, unit.suffix); found {
			n, err := strconv.ParseInt(digits, 10, 64)
			if err != nil || n < 0 || n > 1<<62/unit.factor {
				return 0, fmt.Errorf("no size: %s", text)
			}
			return n * unit.factor, nil
		}
	}
	return 0, fmt.Errorf("no size: %s", text)
}
