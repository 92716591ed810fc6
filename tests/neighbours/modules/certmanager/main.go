// Command certmanager runs cert-manager's own controllers, CA injector and admission webhook in one process.
//
// cert-manager publishes its library as a Go module, and its programs only as images: the modules of its programs
// (cmd/controller, cmd/cainjector, cmd/webhook) are not in the Go module proxy. This program does what theirs do, with
// the parts that `certificates.mode=certManager` of Muster's chart needs, from the library as it was published. Its
// module path lies below cert-manager's, as theirs do: that lets it build the webhook, which is internal to them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/cert-manager/cert-manager/internal/webhook"
	certmanager "github.com/cert-manager/cert-manager/pkg/client/clientset/versioned/scheme"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/util"
	"github.com/cert-manager/cert-manager/pkg/webhook/options"
)

// wanted names the controllers that are started: all of certificates, and issuers that need nobody outside the cluster.
var wanted = []string{
	issuers.ControllerName,
	clusterissuers.ControllerName,
	trigger.ControllerName,
	keymanager.ControllerName,
	requestmanager.ControllerName,
	issuing.ControllerName,
	readiness.ControllerName,
	revisionmanager.ControllerName,
	approver.ControllerName,
	selfsigned.CRControllerName,
	ca.CRControllerName,
}

const workers = 5 // of each controller, as in cert-manager's program

func main() {
	flags := flag.NewFlagSet("certmanager", flag.ExitOnError) // libraries put theirs among the others
	kubeconfig := flags.String("kubeconfig", "", "the cluster")
	port := flags.Int("port", 0, "where the webhook listens")
	healthPort := flags.Int("health-port", 0, "where the webhook says that it serves")
	namespace := flags.String("namespace", "cert-manager", "where the webhook's Secret and those of ClusterIssuers are")
	_ = flags.Parse(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log := klog.Background()
	ctrl.SetLogger(log)
	ctx = klog.NewContext(ctx, log)

	parts := map[string]func() error{
		"webhook":     func() error { return serve(ctx, *kubeconfig, int32(*port), int32(*healthPort), *namespace) },
		"cainjector":  func() error { return inject(ctx, *kubeconfig) },
		"controllers": func() error { return control(ctx, *kubeconfig, *namespace) },
	}
	var ended sync.WaitGroup
	for name, run := range parts {
		ended.Go(func() {
			if err := run(); err != nil && ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "the %s ended: %s\n", name, err)
				os.Exit(1)
			}
		})
	}
	ended.Wait()
}

// control runs cert-manager's controllers until the context ends.
func control(ctx context.Context, kubeconfig, namespace string) error {
	settings := controller.ContextOptions{Kubeconfig: kubeconfig}
	settings.ClusterResourceNamespace = namespace
	settings.CertificateRequestMinimumBackoffDuration = time.Hour
	settings.CertificateRequestMaximumBackoffDuration = 32 * time.Hour
	factory, err := controller.NewContextFactory(ctx, settings)
	if err != nil {
		return err
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	failed := make(chan error, len(wanted))
	for _, name := range wanted {
		one, err := controller.Known()[name](factory)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		go func() { failed <- one.Run(workers, ctx) }()
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	for range wanted {
		if err := <-failed; err != nil {
			return err
		}
	}
	return nil
}

// inject keeps the caBundles of webhook configurations and CRDs until the context ends.
func inject(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kubernetes.AddToScheme, certmanager.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(util.RestConfigWithUserAgent(config, "cainjector"), ctrl.Options{
		Scheme:  scheme,
		Cache:   cache.Options{ReaderFailOnMissingInformer: true},
		Client:  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Metrics: metrics.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	err = cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.CustomResourceDefinitionName:       true,
			cainjector.APIServiceName:                     true,
		},
	})
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

// serve answers the API server about Certificates, Issuers and CertificateRequests until the context ends.
//
// It makes its own certificate, for localhost, and leaves its authority in a Secret for the CA injector.
func serve(ctx context.Context, kubeconfig string, port, healthPort int32, namespace string) error {
	config, err := options.NewWebhookConfiguration()
	if err != nil {
		return err
	}
	config.KubeConfig = kubeconfig
	config.SecurePort = port
	config.HealthzPort = healthPort
	config.MetricsListenAddress = "0"
	config.TLSConfig.Dynamic.SecretNamespace = namespace
	config.TLSConfig.Dynamic.SecretName = "cert-manager-webhook-ca" // the name that its chart gives it
	config.TLSConfig.Dynamic.DNSNames = []string{"localhost"}
	server, err := webhook.NewCertManagerWebhookServer(klog.FromContext(ctx), *config)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
