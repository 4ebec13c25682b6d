package wsconn

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"
)

// What the zero value of an option means.
const (
	DefaultReadLimit    = 4 << 20 // bytes
	DefaultPingInterval = 20 * time.Second
	DefaultPongTimeout  = 10 * time.Second
	DefaultWriteTimeout = 10 * time.Second
)

// Options are read once, by Dial, Accept or CheckRequest, and not kept. Nil and the zero value mean the defaults.
type Options struct {
	// ReadLimit bounds one incoming message in bytes, after decompression. 0 means DefaultReadLimit.
	// A longer message ends the connection with ErrMessageTooBig (close code 1009).
	ReadLimit int64
	// RefuseBinary ends the connection with ErrUnsupportedData (close code 1003) when a binary message comes.
	// Otherwise it is read like a text message.
	RefuseBinary bool
	// Compression offers or accepts permessage-deflate without context takeover. Each message being compressed
	// or inflated holds over a megabyte, so it is off by default.
	Compression bool
	// Subprotocols are offered in this order by Dial and preferred in this order by Accept. They are compared
	// exactly. Where the ends have none in common the connection has none: see Conn.Subprotocol.
	Subprotocols []string
	// PingInterval is the time from one answered ping to the next. 0 means DefaultPingInterval, negative no pings.
	PingInterval time.Duration
	// PongTimeout is the time from a ping being due to its own pong; over it the connection ends with
	// ErrPingTimeout. 0 means DefaultPongTimeout.
	PongTimeout time.Duration
	// WriteTimeout bounds one Write; over it the connection ends with ErrWriteTimeout. 0 means
	// DefaultWriteTimeout, negative no bound.
	WriteTimeout time.Duration
	// Buffers are shared with other connections. Nil means some of the connection's own.
	Buffers *Buffers
	// Logger gets what an operator should know and no caller is told, never a message's content. Nil discards.
	Logger *slog.Logger

	// OriginPatterns, of Accept, lists the web pages that may connect besides those of the same host. Each is a
	// path.Match pattern, case ignored, for the host of the Origin header ("*.example.com", port included where
	// there is one), or for scheme://host where the pattern has "://".
	OriginPatterns []string
	// InsecureAnyOrigin, of Accept, lets every web page connect as the user who looks at it: cross-site request
	// forgery. Only for ends that carry no authority at all.
	InsecureAnyOrigin bool
	// Hosts, of Accept, lists the names this end answers to: path.Match patterns for the Host header, case and
	// port ignored. When empty, a listener on a loopback address answers to loopback names only (localhost,
	// *.localhost, 127.0.0.0/8, [::1]), since a page may point its own name there (DNS rebinding) and then pass
	// the origin check; any other listener answers to every name.
	Hosts []string

	// HTTPClient, of Dial, makes the handshake. Nil means http.DefaultClient.
	HTTPClient *http.Client
	// Header, of Dial, is added to the handshake request.
	Header http.Header
	// Host, of Dial, replaces the URL's host in the Host header where it is not empty.
	Host string
}

// OptionError names the option that is wrong, and why.
type OptionError struct {
	Field  string // of Options, with the index where it is a list
	Reason string
}

func (e *OptionError) Error() string { return "wsconn: Options." + e.Field + ": " + e.Reason }

// Validate returns an *OptionError for the first option that cannot be meant, or nil. Dial and Accept call it too.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	if o.ReadLimit < 0 {
		return &OptionError{"ReadLimit", fmt.Sprintf("%d bytes is negative", o.ReadLimit)}
	}
	if o.PongTimeout < 0 {
		return &OptionError{"PongTimeout", fmt.Sprintf("%v is negative; a negative PingInterval turns pings off", o.PongTimeout)}
	}
	for i, name := range o.Subprotocols {
		field := fmt.Sprintf("Subprotocols[%d]", i)
		if !isToken(name) {
			return &OptionError{field, fmt.Sprintf("%q is not a token (RFC 9110 section 5.6.2)", name)}
		}
		if slices.Contains(o.Subprotocols[:i], name) {
			return &OptionError{field, fmt.Sprintf("%q stands twice", name)}
		}
	}
	for i, pattern := range o.OriginPatterns {
		_, host, hasScheme := strings.Cut(pattern, "://")
		if !hasScheme {
			host = pattern
		}
		if reason := badPattern(pattern, host); reason != "" {
			return &OptionError{fmt.Sprintf("OriginPatterns[%d]", i), reason}
		}
	}
	for i, pattern := range o.Hosts {
		if reason := badPattern(pattern, pattern); reason != "" {
			return &OptionError{fmt.Sprintf("Hosts[%d]", i), reason}
		}
		if _, _, hasPort := strings.Cut(pattern, ":"); hasPort && !isAddr(pattern) {
			return &OptionError{fmt.Sprintf("Hosts[%d]", i), fmt.Sprintf("%q has a port, which is never compared", pattern)}
		}
	}
	return nil
}

// badPattern says why no host can match, or "".
func badPattern(pattern, host string) string {
	if host == "" {
		return fmt.Sprintf("%q has no host", pattern)
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Sprintf("%q: %v", pattern, err)
	}
	if strings.ContainsAny(host, "/ ") {
		return fmt.Sprintf("%q has a path or a space, which no host has", pattern)
	}
	return ""
}

// isAddr reports whether host is an IP address, in brackets or not.
func isAddr(host string) bool {
	_, err := netip.ParseAddr(unbracket(host))
	return err == nil
}

func unbracket(host string) string {
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// isToken implements "token" of RFC 9110 section 5.6.2.
func isToken(s string) bool {
	for _, r := range s {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		case strings.ContainsRune("!#$%&'*+-.^_`|~", r):
		default:
			return false
		}
	}
	return s != ""
}

// withDefaults returns a copy of o in which every zero stands for itself.
func (o *Options) withDefaults() Options {
	var full Options
	if o != nil {
		full = *o
	}
	if full.ReadLimit == 0 {
		full.ReadLimit = DefaultReadLimit
	}
	if full.PingInterval == 0 {
		full.PingInterval = DefaultPingInterval
	}
	if full.PongTimeout == 0 {
		full.PongTimeout = DefaultPongTimeout
	}
	if full.WriteTimeout == 0 {
		full.WriteTimeout = DefaultWriteTimeout
	}
	if full.Buffers == nil {
		full.Buffers = &Buffers{}
	}
	if full.Logger == nil {
		full.Logger = slog.New(slog.DiscardHandler)
	}
	if full.HTTPClient == nil {
		full.HTTPClient = http.DefaultClient
	}
	return full
}
