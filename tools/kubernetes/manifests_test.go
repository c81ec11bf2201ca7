// Package kubernetes checks the files of deploy/kubernetes with the code of Kubernetes' API server. It is a module of its own,
// as it needs much of Kubernetes.
package kubernetes

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/registry/batch/job"
)

const folder = "../../deploy/kubernetes"

// TestManifests decodes every file strictly, and validates it as the API server does.
func TestManifests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		for _, err := range problems(read(t, file)) {
			t.Errorf("%s: %v", filepath.Base(file), err)
		}
	}
}

// TestProblems: a field that does not exist, one in a wrong place and a policy that the server refuses are found.
func TestProblems(t *testing.T) {
	parts := string(read(t, filepath.Join(folder, "parts.yaml")))
	for _, c := range [][2]string{
		{"backoffLimitPerIndex", "backOffLimitPerIndex"},
		{"restartPolicy: Never", "restartPolicy: OnFailure"},
		{"completionMode: Indexed", "completionMode: NonIndexed"},
		{"containerName: lowtoggle", "containerName: other"},
		{"operator: NotIn", "operator: Not"},
		{"cpu: 8", "cpu: eight"},
		{"mountPath: /models", "mountPath: ''"},
	} {
		broken := strings.Replace(parts, c[0], c[1], 1)
		if broken == parts || problems([]byte(broken)) == nil {
			t.Errorf("%s in place of %s is not found", c[1], c[0])
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// problems lists what the API server would refuse in a file of one object.
func problems(data []byte) field.ErrorList {
	strict := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	object, _, err := strict.Decode(bytes.TrimSpace(data), nil, nil)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	legacyscheme.Scheme.Default(object)
	switch o := object.(type) {
	case *batchv1.Job:
		var j batch.Job
		if err := convert(o, &j); err != nil {
			return err
		}
		j.Namespace, j.UID = "default", "1"
		job.Strategy.PrepareForCreate(context.Background(), &j)
		return job.Strategy.Validate(context.Background(), &j)
	case *corev1.ConfigMap:
		var values core.ConfigMap
		if err := convert(o, &values); err != nil {
			return err
		}
		values.Namespace = "default"
		return validation.ValidateConfigMap(&values)
	}
	return field.ErrorList{field.NotSupported(nil, object.GetObjectKind().GroupVersionKind().Kind, []string{"Job", "ConfigMap"})}
}

func convert(from, to runtime.Object) field.ErrorList {
	if err := legacyscheme.Scheme.Convert(from, to, nil); err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return nil
}
