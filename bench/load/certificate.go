package load

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"
)

// keys are the two halves of TLS between the ends of a Wire.
type keys struct {
	server, client *tls.Config
}

// TLS returns configurations for the two ends, which trust each other and nobody
// else. The certificate (ECDSA, P-256, for 127.0.0.1 and localhost) is made by
// the first call and kept in memory. Each call returns copies.
func (w *Wire) TLS() (server, client *tls.Config, err error) {
	w.certify.Do(func() { w.keys, w.certErr = newKeys() })
	if w.certErr != nil {
		return nil, nil, w.certErr
	}
	return w.keys.server.Clone(), w.keys.client.Clone(), nil
}

// newKeys makes a certificate that signs itself, so that it is its own root.
func newKeys() (*keys, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("load: certificate: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "localhost"},
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("load: certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("load: certificate: %w", err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(leaf)
	return &keys{
		server: &tls.Config{
			MinVersion:   tls.VersionTLS13,
			Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}},
		},
		client: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: trusted},
	}, nil
}
