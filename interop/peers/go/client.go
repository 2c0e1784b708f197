package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/quic-go/quic-go"
)

type download struct {
	URL    string `json:"url"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

type report struct {
	OK                bool       `json:"ok"`
	Downloads         []download `json:"downloads"`
	Resumed           bool       `json:"resumed"`
	EarlyData         bool       `json:"early_data"`
	VersionNegotiated bool       `json:"version_negotiated"`
	Version           uint32     `json:"version"`
	Error             *string    `json:"error"`
}

// runClient downloads and reports; true when all went well.
func runClient(o *options) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	r := &report{Downloads: []download{}}
	err := fetchAll(ctx, o, r)
	if r.OK = err == nil; !r.OK {
		text := err.Error()
		r.Error = &text
	}
	printLine(r)
	return r.OK
}

func fetchAll(ctx context.Context, o *options, r *report) error {
	if len(o.urls) == 0 {
		return fmt.Errorf("no URL")
	}
	target, err := url.Parse(o.urls[0])
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(o.ca)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	stored := make(chan struct{}, 16)
	tlsConfig := &tls.Config{
		RootCAs:            roots,
		NextProtos:         []string{"hq-interop"},
		ClientSessionCache: &tellingCache{tls.NewLRUClientSessionCache(4), stored},
		KeyLogWriter:       keyLog(),
	}
	config := &quic.Config{}
	if o.secondVersion {
		config.Versions = []quic.Version{quic.Version2, quic.Version1}
	}
	first, second := []string{}, o.urls
	if o.resume || o.early {
		first, second = o.urls[:1], o.urls[1:]
		if len(second) == 0 {
			second = first
		}
		connection, err := quic.DialAddr(ctx, target.Host, tlsConfig, config)
		if err != nil {
			return err
		}
		if r.Downloads, err = fetch(ctx, connection, first); err != nil {
			return err
		}
		// The ticket may come after the body.
		select {
		case <-stored:
		case <-time.After(2 * time.Second):
			return fmt.Errorf("no ticket came")
		}
		connection.CloseWithError(0, "")
	}
	dial := quic.DialAddr
	if o.early {
		dial = quic.DialAddrEarly
	}
	connection, err := dial(ctx, target.Host, tlsConfig, config)
	if err != nil {
		return err
	}
	downloads, err := fetch(ctx, connection, second)
	if err != nil {
		return err
	}
	r.Downloads = append(r.Downloads, downloads...)
	<-connection.HandshakeComplete()
	state := connection.ConnectionState()
	r.Resumed, r.EarlyData, r.Version = state.TLS.DidResume, state.Used0RTT, uint32(state.Version)
	r.VersionNegotiated = o.secondVersion && state.Version == quic.Version1
	return connection.CloseWithError(0, "done")
}

// fetch downloads all URLs at once on one connection.
func fetch(ctx context.Context, connection *quic.Conn, urls []string) ([]download, error) {
	downloads, errors := make([]download, len(urls)), make(chan error, len(urls))
	for i, name := range urls {
		go func() {
			var err error
			downloads[i], err = fetchOne(ctx, connection, name)
			errors <- err
		}()
	}
	for range urls {
		if err := <-errors; err != nil {
			return nil, err
		}
	}
	return downloads, nil
}

func fetchOne(ctx context.Context, connection *quic.Conn, name string) (download, error) {
	none := download{}
	target, err := url.Parse(name)
	if err != nil {
		return none, err
	}
	stream, err := connection.OpenStreamSync(ctx)
	if err != nil {
		return none, err
	}
	if _, err := fmt.Fprintf(stream, "GET %s\r\n", target.Path); err != nil {
		return none, err
	}
	if err := stream.Close(); err != nil {
		return none, err
	}
	hash := sha256.New()
	n, err := io.Copy(hash, stream)
	return download{name, n, fmt.Sprintf("%x", hash.Sum(nil))}, err
}

// tellingCache says when a ticket has come.
type tellingCache struct {
	tls.ClientSessionCache
	stored chan struct{}
}

func (c *tellingCache) Put(key string, session *tls.ClientSessionState) {
	c.ClientSessionCache.Put(key, session)
	if session != nil {
		select {
		case c.stored <- struct{}{}:
		default:
		}
	}
}
