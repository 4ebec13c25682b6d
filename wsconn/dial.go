package wsconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/coder/websocket"
)

// DialError is why Dial made no connection.
type DialError struct {
	URL    string // without userinfo, query and fragment, which may hold secrets
	Status int    // of the answer to the handshake; 0 when there was none
	Err    error
}

func (e *DialError) Error() string {
	return fmt.Sprintf("wsconn: dial %q: %v", e.URL, e.Err)
}

func (e *DialError) Unwrap() error { return e.Err }

// Dial makes a connection to a ws, wss, http or https URL. The context bounds the handshake only; nil opts means
// the defaults. The error is a *DialError, or an *OptionError before anything was sent.
//
// The response is the answer to the handshake, nil where there was none. Its body need not be closed: it is nil
// after a success, and after an error the first 1,024 bytes, in memory.
func Dial(ctx context.Context, rawURL string, opts *Options) (*Conn, *http.Response, error) {
	if err := opts.Validate(); err != nil {
		return nil, nil, err
	}
	fail := func(resp *http.Response, err error) (*Conn, *http.Response, error) {
		e := &DialError{URL: redact(rawURL), Err: err}
		if resp != nil {
			e.Status = resp.StatusCode
		}
		return nil, resp, e
	}
	if err := checkURL(rawURL); err != nil {
		return fail(nil, err)
	}
	c := newConn(opts.withDefaults(), true)
	hook := &dialHook{ctx: ctx, base: c.opts.HTTPClient.Transport}
	client := *c.opts.HTTPClient
	client.Transport = hook
	if client.CheckRedirect == nil { // the library sets one, and with it drops the bound of net/http
		client.CheckRedirect = checkRedirect
	}
	ws, resp, err := websocket.Dial(ctx, rawURL, &websocket.DialOptions{
		HTTPClient:      &client,
		HTTPHeader:      c.opts.Header,
		Host:            c.opts.Host,
		Subprotocols:    c.opts.Subprotocols,
		CompressionMode: compressionMode(c.opts.Compression),
		OnPingReceived:  c.pingReceived,
		OnPongReceived:  c.pongReceived,
	})
	held := hook.release()
	if err != nil {
		return fail(resp, dialCause(ctx, resp, err))
	}
	if !held {
		ws.CloseNow()
		return fail(resp, ctxError(ctx))
	}
	// The library compares without regard to case.
	if name := ws.Subprotocol(); name != "" && !slices.Contains(c.opts.Subprotocols, name) {
		ws.CloseNow()
		return fail(resp, fmt.Errorf("subprotocol %q was chosen and not offered", name))
	}
	c.start(ws, hook.sock)
	return c, resp, nil
}

// CheckURL returns a *DialError for a URL that Dial cannot even try.
func CheckURL(rawURL string) error {
	if err := checkURL(rawURL); err != nil {
		return &DialError{URL: redact(rawURL), Err: err}
	}
	return nil
}

// checkRedirect is what net/http does where nobody says otherwise.
func checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}

// checkURL rejects what Dial cannot even try, naming the part that is wrong without repeating anything secret.
func checkURL(raw string) error {
	u, err := url.Parse(raw)
	var parse *url.Error
	switch {
	case !strings.Contains(raw, "://"):
		return errors.New("bad URL: it begins with no scheme followed by ://, as in ws://host/")
	case err != nil && strings.Contains(raw, "@"):
		return errors.New("bad URL: it does not parse; why is not shown, since it may hold a password")
	case errors.As(err, &parse):
		return fmt.Errorf("bad URL: %w", parse.Err) // its own text would repeat the whole URL
	case err != nil:
		return fmt.Errorf("bad URL: %w", err)
	case !slices.Contains([]string{"ws", "wss", "http", "https"}, u.Scheme):
		return errors.New("bad URL: the scheme is none of ws, wss, http, https")
	case u.Hostname() == "":
		return errors.New("bad URL: no host")
	case strings.Contains(raw, "#"):
		return errors.New("bad URL: a WebSocket URL has no fragment (RFC 6455 section 3)")
	}
	return nil
}

// redact cuts from a URL, even one that does not parse, the parts that may hold secrets.
func redact(raw string) string {
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
	}
	raw, _, _ = strings.Cut(raw, "#")
	raw, _, _ = strings.Cut(raw, "?")
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return raw[strings.LastIndexByte(raw, '@')+1:]
	}
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
}

// dialCause is the cause in an error of the library, without the URL that net/http puts into it.
func dialCause(ctx context.Context, resp *http.Response, err error) error {
	var sent *url.Error
	switch {
	case resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		return fmt.Errorf("the handshake was answered with status %d, not 101%s", resp.StatusCode, said(resp))
	case ctx.Err() != nil:
		return ctxError(ctx)
	case errors.As(err, &sent):
		return sent.Err
	}
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// said is the beginning of what the other end answered, for people. The body, which
// is in memory, can still be read.
func said(resp *http.Response) string {
	if resp.Body == nil {
		return ""
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	text := strings.TrimSpace(strings.ToValidUTF8(string(body[:min(len(body), 200)]), ""))
	if text == "" {
		return ""
	}
	return fmt.Sprintf(": %q", text)
}

// ctxError is why ctx ended, in which both the context's own error and a cause beside it are found.
func ctxError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ctx.Err()) {
		return cause
	}
	return fmt.Errorf("%w: %w", ctx.Err(), cause)
}

// A dialHook is the RoundTripper of one Dial. It puts a socket between the library and the stream of the answer,
// and has ctx cut it while the library still looks at the answer, when net/http no longer does.
type dialHook struct {
	ctx  context.Context
	base http.RoundTripper // nil means http.DefaultTransport
	sock *socket           // nil until an answer switched protocols
	stop func() bool
}

// RoundTrip wraps base, and for a 101 answer captures the stream below it before handing the response on.
func (h *dialHook) RoundTrip(r *http.Request) (*http.Response, error) {
	base := h.base
	if base == nil {
		base = http.DefaultTransport
	}
	var conn net.Conn
	var ahead int
	if transport, ok := base.(*http.Transport); ok { // any other may put something of its own into the Body
		ahead = max(transport.ReadBufferSize, 4<<10)
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			GotConn: func(got httptrace.GotConnInfo) { conn = got.Conn },
		}))
	}
	resp, err := base.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return resp, err
	}
	if stream, ok := resp.Body.(io.ReadWriteCloser); ok {
		if reflect.TypeOf(resp.Body).String() != "*http.readWriteCloserBody" {
			conn = nil // a RoundTripper that the Transport was given put something in between
		}
		h.sock = newSocket(stream, conn, nil, ahead)
		h.stop = context.AfterFunc(h.ctx, h.sock.cut)
		resp.Body = h.sock
	}
	return resp, nil
}

// release ends the hold of ctx on the socket. It reports false where ctx was faster and has cut it.
func (h *dialHook) release() bool { return h.stop == nil || h.stop() }
