package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/quic-go/quic-go"
)

// serve answers requests until the process is ended.
func serve(o *options) error {
	certificate, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return err
	}
	tlsConfig := &tls.Config{
		Certificates: []tls.Certificate{certificate},
		NextProtos:   []string{"hq-interop"},
		KeyLogWriter: keyLog(),
	}
	var listeners []*quic.EarlyListener
	var addresses []string
	for _, listen := range o.listen {
		address, err := net.ResolveUDPAddr("udp", listen)
		if err != nil {
			return err
		}
		socket, err := net.ListenUDP("udp", address)
		if err != nil {
			return err
		}
		transport := &quic.Transport{Conn: socket, VerifySourceAddress: func(net.Addr) bool { return o.retry }}
		listener, err := transport.ListenEarly(tlsConfig, &quic.Config{Allow0RTT: true})
		if err != nil {
			return err
		}
		listeners = append(listeners, listener)
		addresses = append(addresses, listener.Addr().String())
	}
	printLine(map[string]any{"event": "listening", "addresses": addresses})
	block := makeBlock()
	ended := make(chan error)
	for _, listener := range listeners {
		go func() {
			for {
				connection, err := listener.Accept(context.Background())
				if err != nil {
					ended <- err
					return
				}
				go attend(connection, o, block)
			}
		}()
	}
	return <-ended
}

func attend(connection *quic.Conn, o *options, block []byte) {
	for {
		stream, err := connection.AcceptStream(context.Background())
		if err != nil {
			printLine(map[string]any{"event": "closed", "why": err.Error(), "early_data": connection.ConnectionState().Used0RTT})
			return
		}
		go func() {
			if err := answer(stream, o, block); err != nil {
				fmt.Fprintln(os.Stderr, err)
				stream.CancelWrite(500)
			}
		}()
	}
}

func answer(stream *quic.Stream, o *options, block []byte) error {
	line, err := io.ReadAll(io.LimitReader(stream, 4096))
	if err != nil {
		return err
	}
	target, found := strings.CutPrefix(strings.TrimSpace(string(line)), "GET /")
	if !found {
		return fmt.Errorf("not a request: %q", line)
	}
	if size, found := strings.CutPrefix(target, "bytes/"); found {
		n, err := parseSize(size)
		if err != nil {
			return err
		}
		if err := writeBody(stream, block, n); err != nil {
			return err
		}
		return stream.Close()
	}
	if o.root == "" || !filepath.IsLocal(target) {
		return fmt.Errorf("nothing at /%s", target)
	}
	file, err := os.Open(filepath.Join(o.root, target))
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(stream, file); err != nil {
		return err
	}
	return stream.Close()
}
