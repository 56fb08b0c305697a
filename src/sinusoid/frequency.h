#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "posenc/sinusoid/options.h"

namespace posenc {

/// m: what the index is divided by for an axis of `channels` channels.
double divisor_of(const SinusoidOptions& options, int64_t channels);

/// How many frequencies frequencies() has for the sines and for the cosines of such an axis. Where
/// one list serves both, the cosines may leave its last entry out.
struct FrequencyCounts {
  int64_t sines = 0, cosines = 0;
  bool shared = true;
};
FrequencyCounts frequency_counts(const SinusoidOptions& options, int64_t channels);

/// The frequencies of the sines and of the cosines of an axis of `channels` channels, in the
/// recipe's type: (n) each or, with sinusoid::PowerShape::Grid, (positions, n). One tensor where
/// they agree; the cosines may then take fewer of its entries.
struct Frequencies {
  at::Tensor sin, cos;
};
Frequencies frequencies(const SinusoidOptions& options, int64_t channels, int64_t positions);

/// Has MKL's exp, log, sin and cos called once by one thread, before any parallel use. MKL chooses
/// a function's kernel on its first call, and where two threads make that call together one of them
/// can get a kernel of a few bits for its whole part (github.com/pytorch/pytorch/issues/188792).
void warm_up_vector_math();

/// Runs `work` so that ATen's operations inside use one thread, whatever the number of threads is:
/// where the split of a tensor between threads decides last bits, these are one thread's.
void run_single_threaded(const std::function<void()>& work);

}  // namespace posenc
