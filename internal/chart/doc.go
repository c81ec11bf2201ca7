// Package chart draws small SVG charts for documents and for the -o flag of commands: panels of lines with intervals,
// or of stacked bars, above a legend.
//
// A chart is 850 pixels wide. Its colours can be read on light and on dark backgrounds. The same chart gives the same
// bytes. A value that is not finite leaves a gap in its line. All text is escaped.
package chart
