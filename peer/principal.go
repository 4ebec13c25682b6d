package peer

import "context"

type principalKey struct{}

// WithPrincipal says on whose behalf the other end of a connection acts, as far as it has
// proved that: for the context that Options.Authorize returns. The name is compared
// exactly, and "" is none.
func WithPrincipal(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, principalKey{}, name)
}

// PrincipalFrom returns what WithPrincipal said, in a handler for instance, and "" where
// nothing did.
func PrincipalFrom(ctx context.Context) string {
	name, _ := ctx.Value(principalKey{}).(string)
	return name
}
