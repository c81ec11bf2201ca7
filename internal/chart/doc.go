// Package chart draws small charts as SVG, for documents and for commands' -o: panels of lines with
// intervals, or of stacked bars, over a legend.
//
// A chart is 850 pixels wide. Its colours lie between light and dark, so that it can be read on both,
// and the same chart gives the same bytes. What is not a finite number is not drawn: a line has a gap
// there. Text may hold anything; it is escaped.
package chart
