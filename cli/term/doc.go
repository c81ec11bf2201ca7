// Package term formats what commands print: tables, wrapped text, numbers with units, progress bars.
package term
