package bucket

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"

	"github.com/minio/minio-go/v7"
)

// Write creates or replaces an object.
func (f *Folder) Write(ctx context.Context, name string, data []byte) error {
	return f.put(ctx, name, data, minio.PutObjectOptions{})
}

// WriteNew creates an object. If the object exists and the store supports conditional writes, the error is fs.ErrExist.
func (f *Folder) WriteNew(ctx context.Context, name string, data []byte) error {
	var options minio.PutObjectOptions
	options.SetMatchETagExcept("*")
	return f.put(ctx, name, data, options)
}

func (f *Folder) put(ctx context.Context, name string, data []byte, options minio.PutObjectOptions) error {
	options.ContentType, options.DisableContentSha256 = "application/octet-stream", true // the body has an MD5 instead
	sum := md5.Sum(data)
	return f.retry(ctx, writing, name, func(ctx context.Context) error {
		_, err := f.core.PutObject(ctx, f.bucket, f.key(name), bytes.NewReader(data), int64(len(data)), base64.StdEncoding.EncodeToString(sum[:]), "", options)
		return err
	})
}

// Remove removes an object. A missing object is no error.
func (f *Folder) Remove(ctx context.Context, name string) error {
	return f.retry(ctx, removing, name, func(ctx context.Context) error {
		return f.core.RemoveObject(ctx, f.bucket, f.key(name), minio.RemoveObjectOptions{})
	})
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crc returns the CRC-32C of data in base64, as S3 writes it.
func crc(data []byte) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(data, castagnoli)))
}
