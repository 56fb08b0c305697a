#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "posenc/positions/sinusoid/options.h"

namespace posenc {

/// m, the divisor of the index, for an axis of `channels` channels.
double divisor_of(const SinusoidOptions& options, int64_t channels);

/// Whether there is one frequency per pair, whatever the index: the divisor has no effect.
bool in_bands(sinusoid::Frequency frequency);

/// How many frequencies frequencies() returns for the sines and for the cosines of such an axis.
/// Where one list serves both, the cosines may leave out its last entry.
struct FrequencyCounts {
  int64_t sines = 0, cosines = 0;
  bool shared = true;
};
FrequencyCounts frequency_counts(const SinusoidOptions& options, int64_t channels);

/// The frequencies of the sines and of the cosines of an axis of `channels` channels, in the
/// recipe's type: (n) each or, with sinusoid::PowerShape::Grid, (positions, n). One tensor where
/// they agree; the cosines may then use fewer of its entries.
struct Frequencies {
  at::Tensor sin, cos;
};
Frequencies frequencies(const SinusoidOptions& options, int64_t channels, int64_t positions);

/// Calls MKL's exp, log, sin and cos once on one thread, before any parallel use. MKL chooses a
/// function's kernel on the first call; if two threads make that call at once, one of them can get
/// a kernel of only a few correct bits for its whole share
/// (github.com/pytorch/pytorch/issues/188792).
void warm_up_vector_math();

/// Runs `work` with ATen's operations inside it on one thread, whatever the number of threads is:
/// where the last bits depend on how a tensor is split between threads, they are those of one
/// thread.
void run_single_threaded(const std::function<void()>& work);

}  // namespace posenc
