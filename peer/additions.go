package peer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duetrpc/duet/codec"
)

// additions are what the library adds to a request of this end, as it is encoded.
type additions struct {
	params, meta []codec.Member // there must be a place for them; nothing of the user's stands in the way
	also         []codec.Member // in params._meta, where there is a place and the user has none of that name
	top          []codec.Member // beside the params
}

// additionsOf are those of every request with this context, nil if there are none; the
// time that is left is told to a call.
func (c *Conn) additionsOf(ctx context.Context, isCall bool) (*additions, error) {
	meta := outgoingMeta(ctx)
	deadline, bounded := ctx.Deadline()
	bounded = bounded && isCall && c.opts.Deadlines
	if len(meta)+len(c.opts.Meta) == 0 && !bounded {
		return nil, nil
	}
	if len(c.opts.Meta) > 0 {
		all := maps.Clone(c.opts.Meta)
		maps.Copy(all, meta)
		meta = all
	}
	a := &additions{}
	if bounded {
		a.also = append(a.also, timeoutMember(time.Until(deadline)))
	}
	for _, name := range slices.Sorted(maps.Keys(meta)) {
		if c.isOwn(name) {
			continue // of a request that came, and none of this one's affairs
		}
		if !utf8.ValidString(name) {
			return nil, fmt.Errorf("%w: _meta %q is not UTF-8", ErrParams, name)
		}
		rules := c.valueRules
		rules.Depth = max(1, rules.Depth-1) // params, and _meta in them
		if err := codec.Check(meta[name], &rules); err != nil {
			return nil, fmt.Errorf("%w: _meta %q: %w", ErrParams, name, err)
		}
		to := &a.also
		if c.opts.TopLevelTrace && isTrace(name) {
			to = &a.top
		}
		*to = append(*to, codec.Member{Name: name, Value: meta[name]})
	}
	return a, nil
}

// isOwn reports whether a member of params._meta is for this library to send: what a
// handler passes on of its own request must not ask, in the name of that, for progress.
func (c *Conn) isOwn(name string) bool {
	if strings.HasPrefix(name, "io.github.duetrpc/") {
		return true
	}
	progress, items := c.opts.Profile.Progress.Places()
	here := "/" + metaMember + "/" + name
	return slices.Contains(progress, here) || slices.Contains(items, here)
}

// addTo returns params with what is added to them. Nil params are none.
func (a *additions) addTo(params []byte) ([]byte, error) {
	if len(a.params)+len(a.meta)+len(a.also) == 0 {
		return params, nil
	}
	if params != nil && first(params) != '{' {
		if len(a.params)+len(a.meta) > 0 {
			return nil, fmt.Errorf("%w: they are an array", ErrNoPlace)
		}
		return params, nil
	}
	own := codec.Find(params, metaMember)
	if string(own) == "null" {
		own = nil
	}
	if own != nil && own[0] != '{' {
		return nil, fmt.Errorf("%w: their _meta is no object", ErrNoPlace)
	}
	meta := slices.Clone(a.meta)
	for _, m := range a.also {
		if codec.Find(own, m.Name) == nil {
			meta = append(meta, m)
		}
	}
	members := slices.Clone(a.params)
	if len(meta) > 0 {
		members = append(members, codec.Member{Name: metaMember, Value: codec.AppendObject(nil, own, meta)})
	}
	return codec.AppendObject(nil, params, members), nil
}

// addTop adds what stands beside the params of the message that ends buf.
func (a *additions) addTop(message []byte) []byte {
	if len(a.top) == 0 {
		return message
	}
	message = message[:len(message)-1]
	for _, m := range a.top {
		message = append(codec.AppendString(append(message, ','), m.Name), ':')
		message = append(message, m.Value...)
	}
	return codec.Close(message)
}
