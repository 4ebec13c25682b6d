module github.com/duetrpc/duet/bench/chaos

go 1.26.0

replace github.com/duetrpc/duet => ../..

require (
	github.com/Shopify/toxiproxy/v2 v2.12.0
	github.com/duetrpc/duet v0.0.0-00010101000000-000000000000
)

require (
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/coder/websocket v1.8.15 // indirect
	github.com/go-json-experiment/json v1.27.2 // indirect
	github.com/hashicorp/golang-lru/v2 v2.0.7 // indirect
	github.com/mattn/go-colorable v0.1.13 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/rs/zerolog v1.33.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/sys v0.31.0 // indirect
)
