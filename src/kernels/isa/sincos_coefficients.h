// Taylor coefficients of sin and cos of 2*pi*x in x^2, each rounded to a pair of doubles. The
// resulting rows are compared with MPFR's (tests/positions/sinusoid/exact/mpfr_test.cpp).
#pragma once

#ifdef POSENC_ISA
namespace posenc::kernels::sincos::POSENC_ISA {
namespace {

constexpr double kSin[14] = {0x1.921fb54442d18p+2,  -0x1.4abbce625be53p+5, 0x1.466bc6775aae2p+6,
                             -0x1.32d2cce62bd86p+6, 0x1.50783487ee782p+5,  -0x1.e3074fde8871fp+3,
                             0x1.e8f434d018d63p+1,  -0x1.6fadb9f155744p-1, 0x1.aaec32af93359p-4,
                             -0x1.8a404211f9547p-7, 0x1.2877020d52cf0p-10, -0x1.7215f879e1ac9p-14,
                             0x1.859c594ba4573p-18, -0x1.5e91aac4928dbp-22};
constexpr double kSinLow[8] = {
    0x1.1a62633145c07p-52,  0x1.05511c68476a8p-49,  -0x1.6dc0cbddb0fc3p-49, 0x1.066847a026e69p-48,
    -0x1.1be14e6e8854ap-49, -0x1.88ef203b0a336p-51, 0x1.94682b2571263p-54,  0x1.bab97c50b4cd0p-55};
constexpr double kCos[15] = {0x1.0000000000000p+0,  -0x1.3bd3cc9be45dep+4,  0x1.03c1f081b5ac4p+6,
                             -0x1.55d3c7e3cbffap+6, 0x1.e1f506891babbp+5,   -0x1.a6d1f2a204a8cp+4,
                             0x1.f9d38a3763cc3p+2,  -0x1.b6e24f44b128fp+0,  0x1.20c62c2f2d7f5p-2,
                             -0x1.2a0c591af8314p-5, 0x1.ef6e308d6d1c4p-9,   -0x1.52ae4120fde27p-12,
                             0x1.838d8f4321800p-16, -0x1.789d662bb5482p-20, 0x1.3aab85bac2365p-24};
constexpr double kCosLow[9] = {0x0.0p+0,
                               -0x1.692b71366cc04p-50,
                               -0x1.32b33f87fc145p-48,
                               0x1.d582920937625p-53,
                               -0x1.7362f495c096dp-52,
                               0x1.5961232276df6p-50,
                               -0x1.c8a14c8bd6bc5p-52,
                               -0x1.6de1e0a0c23b9p-55,
                               -0x1.5a3cd1a11c7a2p-56};

}  // namespace
}  // namespace posenc::kernels::sincos::POSENC_ISA
#endif
