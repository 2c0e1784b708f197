package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
)

// Bytes received after which a client that was asked to do so moves.
const moveAfter = 100_000

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
		if r.Downloads, err = fetch(ctx, connection, first, nil); err != nil {
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
	if o.moveTo != "" {
		dial = dialToMove
	}
	connection, err := dial(ctx, target.Host, tlsConfig, config)
	if err != nil {
		return err
	}
	var elsewhere func() error
	if o.moveTo != "" {
		elsewhere = sync.OnceValue(func() error { return move(ctx, connection, o.moveTo) })
	}
	downloads, err := fetch(ctx, connection, second, elsewhere)
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

// dialToMove connects with connection ids that are not empty, as a connection with several sockets needs them.
func dialToMove(ctx context.Context, address string, tlsConfig *tls.Config, config *quic.Config) (*quic.Conn, error) {
	remote, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return nil, err
	}
	tlsConfig = tlsConfig.Clone()
	tlsConfig.ServerName = remote.IP.String()
	return (&quic.Transport{Conn: socket}).Dial(ctx, remote, tlsConfig, config)
}

// move goes on from another socket once the server has answered there.
func move(ctx context.Context, connection *quic.Conn, to string) error {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(to)})
	if err != nil {
		return err
	}
	path, err := connection.AddPath(&quic.Transport{Conn: socket})
	if err != nil {
		return err
	}
	if err := path.Probe(ctx); err != nil {
		return err
	}
	return path.Switch()
}

// fetch downloads all URLs at once on one connection, and calls elsewhere, if any, in the middle of it.
func fetch(ctx context.Context, connection *quic.Conn, urls []string, elsewhere func() error) ([]download, error) {
	downloads, errors := make([]download, len(urls)), make(chan error, len(urls))
	for i, name := range urls {
		go func() {
			var err error
			downloads[i], err = fetchOne(ctx, connection, name, elsewhere)
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

func fetchOne(ctx context.Context, connection *quic.Conn, name string, elsewhere func() error) (download, error) {
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
	n, err := io.CopyN(hash, stream, moveAfter)
	if err == nil && elsewhere != nil {
		if err := elsewhere(); err != nil {
			return none, err
		}
	}
	if err == io.EOF {
		return download{name, n, fmt.Sprintf("%x", hash.Sum(nil))}, nil
	}
	more, err := io.Copy(hash, stream)
	return download{name, n + more, fmt.Sprintf("%x", hash.Sum(nil))}, err
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
