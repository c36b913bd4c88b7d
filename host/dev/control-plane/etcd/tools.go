//go:build tools

// Package tools pins the program that this module exists to build.
package tools

import _ "go.etcd.io/etcd/server/v3"
