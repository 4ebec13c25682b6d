package wsconn

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// CheckRequest decides whether the page that sent r, and the name it was sent to, may connect: Options.Hosts,
// OriginPatterns and InsecureAnyOrigin. Accept does the same; call it alone to refuse before costlier checks.
// The error is an *AcceptError with status 403, or 500 for options that do not pass Validate. It answers nothing.
func CheckRequest(r *http.Request, opts *Options) error {
	if err := opts.Validate(); err != nil {
		return &AcceptError{Status: http.StatusInternalServerError, Err: err}
	}
	full := opts.withDefaults()
	if err := checkHost(r, full.Hosts); err != nil {
		return &AcceptError{Status: http.StatusForbidden, Err: err}
	}
	if full.InsecureAnyOrigin {
		return nil
	}
	if err := checkOrigin(r, full.OriginPatterns); err != nil {
		return &AcceptError{Status: http.StatusForbidden, Err: err}
	}
	return nil
}

// checkHost implements Options.Hosts, and its loopback default when the list is empty.
func checkHost(r *http.Request, allowed []string) error {
	name := hostname(r.Host)
	if len(allowed) == 0 {
		if local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr); !isLoopback(local) || isLoopbackName(name) {
			return nil
		}
		return fmt.Errorf("host %q is not a loopback name on a loopback listener: Options.Hosts can allow it", r.Host)
	}
	for _, pattern := range allowed {
		if isAddr(pattern) {
			pattern = unbracket(pattern) // to path.Match, brackets are a set of characters
		}
		if match(pattern, name) {
			return nil
		}
	}
	return fmt.Errorf("host %q is not in Options.Hosts", r.Host)
}

// checkOrigin lets pass what comes from no web page (RFC 6455 section 10.2): only browsers send Origin, and always.
func checkOrigin(r *http.Request, patterns []string) error {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 || len(origins) == 1 && origins[0] == "" {
		return nil
	}
	if len(origins) > 1 {
		return fmt.Errorf("%d Origin headers", len(origins))
	}
	u, err := url.Parse(origins[0])
	if err != nil || u.Host == "" { // "null" is the origin of sandboxed and local pages, that is of anybody
		return fmt.Errorf("origin %q has no host: only Options.InsecureAnyOrigin allows it", origins[0])
	}
	if strings.EqualFold(u.Host, r.Host) {
		return nil
	}
	for _, pattern := range patterns {
		target := u.Host
		if strings.Contains(pattern, "://") {
			target = u.Scheme + "://" + u.Host
		}
		if match(pattern, target) {
			return nil
		}
	}
	return fmt.Errorf("origin %q is not that of host %q: Options.OriginPatterns can allow it", origins[0], r.Host)
}

// match is path.Match without regard to case, for patterns that passed Validate.
func match(pattern, s string) bool {
	ok, _ := path.Match(strings.ToLower(pattern), strings.ToLower(s))
	return ok
}

// hostname is host without its port, brackets and final dot.
func hostname(host string) string {
	return strings.TrimSuffix((&url.URL{Host: host}).Hostname(), ".")
}

// isLoopback reports whether addr, the listener's own, cannot be reached from another machine.
func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// isLoopbackName reports whether only this machine can be meant (RFC 6761 section 6.3 for localhost).
func isLoopbackName(name string) bool {
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.Unmap().IsLoopback()
	}
	return match("localhost", name) || match("*.localhost", name)
}
