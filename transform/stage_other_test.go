//go:build !unix

package transform

func limitChild(string) error { return nil }
