// An hq-interop peer on quic-go: `server` or `client`, with the flags of all peers under interop/peers.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

type options struct {
	listen                       []string
	cert, key, root, ca, moveTo  string
	urls, paths                  []string
	retry, chacha20, keyUpdate   bool
	resume, early, secondVersion bool
}

func readOptions(words []string) (*options, error) {
	o := &options{}
	for i := 0; i < len(words); i++ {
		word := words[i]
		value := func() string {
			i++
			if i >= len(words) {
				return ""
			}
			return words[i]
		}
		switch word {
		case "--listen":
			o.listen = append(o.listen, value())
		case "--cert":
			o.cert = value()
		case "--key":
			o.key = value()
		case "--root":
			o.root = value()
		case "--ca":
			o.ca = value()
		case "--move":
			o.moveTo = value()
		case "--path":
			o.paths = append(o.paths, value())
		case "--retry":
			o.retry = true
		case "--chacha20":
			o.chacha20 = true
		case "--key-update":
			o.keyUpdate = true
		case "--resume":
			o.resume = true
		case "--0rtt":
			o.early = true
		case "--second-version":
			o.secondVersion = true
		default:
			if len(word) > 2 && word[:2] == "--" {
				return nil, fmt.Errorf("no such flag: %s", word)
			}
			o.urls = append(o.urls, word)
		}
	}
	if o.chacha20 {
		return nil, fmt.Errorf("Go chooses the cipher suites of TLS 1.3 by itself: restrict the other side")
	}
	return o, nil
}

// printLine prints one JSON object.
func printLine(value any) {
	line, err := json.Marshal(value)
	if err == nil {
		fmt.Println(string(line))
	}
}

// keyLog is where secrets go, if anywhere.
func keyLog() io.Writer {
	if name := os.Getenv("SSLKEYLOGFILE"); name != "" {
		if file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			return file
		}
	}
	return nil
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "server | client | certificate DIR")
		os.Exit(2)
	}
	o, err := readOptions(os.Args[2:])
	if err == nil {
		switch os.Args[1] {
		case "server":
			err = serve(o)
		case "certificate":
			if len(os.Args) != 3 {
				err = fmt.Errorf("certificate DIR")
			} else {
				err = makeCertificate(os.Args[2])
			}
		case "client":
			if !runClient(o) {
				os.Exit(1)
			}
		default:
			err = fmt.Errorf("server | client | certificate DIR")
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
