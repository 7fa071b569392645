package engine

import "context"

type authorKey struct{}

// WithAuthor is ctx with the name of whom the changes under it are made for. The versions
// that they make keep the name.
func WithAuthor(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, authorKey{}, name)
}

// Author is the name that WithAuthor gave, "" without.
func Author(ctx context.Context) string {
	name, _ := ctx.Value(authorKey{}).(string)
	return name
}
