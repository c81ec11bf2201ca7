package bucket

import "time"

func init() { firstPause = time.Millisecond }
