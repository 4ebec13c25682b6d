package peer

import "net/http"

// spare is how many upgrades may be under way, at a Server that is full, that may belong to
// connections which are there, and spareEach how many of them on behalf of one principal.
// More would be in the way of others, who want to come back.
const (
	spare     = 64
	spareEach = 16
)

// upgrade is one that is under way, with its places at a Server. nil is one without a
// Server, where everything goes.
type upgrade struct {
	server    *Server
	principal string // that it counts for, "" for none
	admitted  bool   // it is a connection
}

// onBehalf reports whether there may be one more upgrade on behalf of a principal.
func (u *upgrade) onBehalf(principal string) bool {
	if u == nil || principal == "" || u.server.opts.Transport == nil {
		return true
	}
	s := u.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.upgrades[principal] >= spareEach {
		return false
	}
	s.upgrades[principal]++
	u.principal = principal
	return true
}

// admit takes the place of a connection, now that it is known to be one.
func (u *upgrade) admit() error {
	if u == nil {
		return nil
	}
	s := u.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if most := s.opts.Limits.Connections; s.held >= most {
		return &LimitError{What: "Connections", Limit: int64(most)}
	}
	s.held++
	u.admitted = true
	return nil
}

// done is what a connection runs when it is done.
func (u *upgrade) done(c *Conn) {
	if u != nil {
		u.server.leave(c)
	}
}

// end gives back what the upgrade took, and the place too where there is no connection.
func (u *upgrade) end(c *Conn) {
	s := u.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.principal != "" {
		if s.upgrades[u.principal]--; s.upgrades[u.principal] == 0 {
			delete(s.upgrades, u.principal)
		}
	}
	if c != nil {
		return
	}
	s.places--
	if u.admitted {
		s.held--
	}
	s.checkEmpty()
}

// refuseForNow answers an upgrade that there is no room for.
func refuseForNow(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
}
