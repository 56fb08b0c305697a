// The backward pass: the gradient of each row of the weight that some token used. Compiled once per
// instruction set, with -ffp-contract=off.
//
// The reference path is autograd of the composition: grad * noise, times scale, then
// at::embedding_dense_backward, which goes through the tokens in order and adds each to its row,
// from zero. Here the tokens come stably sorted by id: each row is owned by one thread, and gets
// the same sums in the same order, whatever the number of threads. No atomics, no V x D pass.
#include "kernels/isa/embed_kinds.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

// to[j ...] += grad[j ...] * (factor or 0) * scale; the first term of a row is added to 0.
template <typename K, bool kDropout>
struct Term {
  using T = typename K::Stored;
  using V = typename K::Vector;

  T* to = nullptr;
  const T* grad = nullptr;
  const T* next_grad = nullptr;  // next token's gradient: the hardware cannot predict it
  const T* next_out = nullptr;   // next output row, likewise
  const uint8_t* bits = nullptr;
  int64_t first_bit = 0;
  V scale, factor;

  template <bool kFirst>
  POSENC_INLINE void line(int64_t j) const {
    const uint64_t kept = kDropout ? bits_from(bits, first_bit + j) : 0;
#pragma GCC unroll 4
    for (int i = 0; i < K::kLine; i += K::kLanes) {
      V x = K::Element::read(grad + j + i);
      if constexpr (kDropout) x = K::rounded(x * spread(kept >> i, factor));
      // The Exact types round here, as the reference path's cast does.
      x = K::Element::round_any(x * scale);
      const V sum = kFirst ? K::broadcast(0.0) : K::Element::read(to + j + i);
      K::Element::write(to + j + i, K::Element::round(sum + x));
    }
  }

  template <bool kFirst>
  __attribute__((noinline)) void tail(int64_t j, int64_t n) const {
    T grads[K::kLine] = {}, sums[K::kLine] = {};
    memcpy(grads, grad + j, sizeof(T) * static_cast<size_t>(n));
    if (!kFirst) memcpy(sums, to + j, sizeof(T) * static_cast<size_t>(n));
    Term padded = *this;
    padded.to = sums;
    padded.grad = grads;
    padded.first_bit += j;
    padded.template line<kFirst>(0);
    memcpy(to + j, sums, sizeof(T) * static_cast<size_t>(n));
  }

  template <bool kFirst>
  void add(int64_t dim) const {
    const int64_t whole = dim / K::kLine * K::kLine;
    for (int64_t j = 0; j < whole; j += K::kLine) {
      __builtin_prefetch(next_grad + j);
      __builtin_prefetch(next_out + j, 1);
      line<kFirst>(j);
    }
    if (whole < dim) tail<kFirst>(whole, dim - whole);
  }
};

template <typename K, bool kDropout>
void rows(const SumRowsRequest& s, int64_t begin, int64_t end) {
  using T = typename K::Stored;
  const T* const grad = static_cast<const T*>(s.grad);
  Term<K, kDropout> term;
  term.scale = K::broadcast(s.scale);
  term.factor = K::broadcast(s.kept.factor);
  term.bits = s.kept.bits;
  Term<K, false> sum;  // adds the scratch row, times 1
  sum.scale = K::broadcast(1.0);
  const auto out_of = [&](int64_t row) {
    return static_cast<T*>(s.out) + (s.row != nullptr ? s.row[row] : row) * s.out_stride;
  };
  for (int64_t row = begin; row < end; ++row) {
    T* const out = out_of(row);
    term.next_out = sum.next_out = out_of(row + 1 < end ? row + 1 : row);
    term.to = s.scratch != nullptr ? static_cast<T*>(s.scratch) : out;
    for (int64_t i = s.first[row]; i < s.first[row + 1]; ++i) {
      term.grad = grad + s.token[i] * s.dim;
      term.next_grad = grad + s.token[i + 1 < s.first[end] ? i + 1 : i] * s.dim;
      term.first_bit = s.token[i] * s.dim;
      i == s.first[row] ? term.template add<true>(s.dim) : term.template add<false>(s.dim);
    }
    if (s.scratch == nullptr) continue;
    sum.to = out;
    sum.grad = sum.next_grad = term.to;
    sum.template add<false>(s.dim);
  }
}

template <typename K>
void sum_rows(const SumRowsRequest& s, int64_t begin, int64_t end) {
  s.kept.bits != nullptr ? rows<K, true>(s, begin, end) : rows<K, false>(s, begin, end);
}

}  // namespace

const SumRowsKernels sum_rows_kernels = {POSENC_FOR_EACH_TYPE(sum_rows)};

}  // namespace posenc::kernels::embed::POSENC_ISA
