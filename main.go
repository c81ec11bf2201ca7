// Command lowtoggle converts model weights so that fewer of a GPU's wires toggle in matrix products.
package main

import (
	"os"

	"github.com/lowtoggle/lowtoggle/cli"
)

func main() { os.Exit(cli.Main(cli.Interrupts(), os.Args, os.Stdout, os.Stderr)) }
