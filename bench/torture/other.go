//go:build !linux

package main

import "fmt"

func main() { fmt.Println("torture: not run: the disk in memory needs FUSE, and so Linux") }
