module github.com/duetrpc/duet

go 1.26.0

require (
	github.com/coder/websocket v1.8.15
	github.com/go-json-experiment/json v1.27.2
	github.com/hashicorp/golang-lru/v2 v2.0.7
	github.com/lmittmann/tint v1.2.1
	golang.org/x/sync v0.25.0
)

require github.com/cenkalti/backoff/v5 v5.0.3
