package rounder

// SetRoom limits the memory of Hessians on the card.
func (r *Rounder) SetRoom(bytes int64) { r.hessians.room = bytes }
