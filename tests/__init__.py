"""Tests: `unit` is pure, `plane` needs the embedded control plane, `bench` measures."""
