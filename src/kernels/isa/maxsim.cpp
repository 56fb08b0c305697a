// Late interaction: for each row of a query its largest product with the rows of a document. The
// rows of a query form panels (panels.h), by which tiles of the documents' rows are multiplied; the
// largest products are taken from a tile while it is in the nearest cache, so that there is neither
// padding nor a matrix of all products. Compiled once per instruction set.
//
// The reference path is at::matmul and at::amax; each product is one fused sum over k = 0, 1, ...
#include "kernels/isa/panels.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// The largest product so far of each row of a panel: NaN after one that is NaN.
template <int kVectors>
class LargestProducts {
 public:
  LargestProducts() { clear(); }

  void clear() {
    for (int v = 0; v < kVectors; ++v) {
      most_[v] = broadcast(-__builtin_inff());
      is_nan_[v] = Ints{};
    }
  }
  POSENC_INLINE void add(const float* products) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Floats x = load<Floats>(products + v * kFloats);
      most_[v] = maximum(most_[v], x);
      is_nan_[v] |= x != x;
    }
  }
  // `sum` plus those of the first rows, in order.
  float plus(float sum, int64_t rows) const {
    float all[kVectors * kFloats];
    for (int v = 0; v < kVectors; ++v) {
      const Words nan = bits_of(broadcast(__builtin_nanf("")));
      store(all + v * kFloats, floats_of(select(is_nan_[v], nan, bits_of(most_[v]))));
    }
    for (int64_t i = 0; i < rows; ++i) sum += all[i];
    return sum;
  }

 private:
  Floats most_[kVectors];
  Ints is_nan_[kVectors];
};

// Adds the largest products of one panel of a query to the scores of documents [begin, end).
template <int kVectors>
void add_panel(const MaxSimRequest& p, int64_t begin, int64_t end, const float* panel,
               int64_t panel_rows) {
  constexpr int kWidth = kVectors * kFloats;
  alignas(64) float products[kColumns * kWidth];
  LargestProducts<kVectors> largest;
  int64_t document = begin;
  for (int64_t row = p.first[begin]; row < p.first[end]; row += kColumns) {
    const int64_t left = p.first[end] - row, count = left < kColumns ? left : kColumns;
    product<kVectors>(panel, ByRows{p.documents + row * p.width, p.width}, p.width, count,
                      products);
    for (int64_t i = 0; i < count; ++i) {
      while (p.first[document + 1] <= row + i) ++document;  // without rows
      largest.add(products + i * kWidth);
      if (row + i + 1 < p.first[document + 1]) continue;
      p.out[document] = largest.plus(p.out[document], panel_rows);
      largest.clear();
    }
  }
}

// The panels of a query: f(first row, rows, offset of the packed panel).
template <typename F>
POSENC_INLINE void each_panel(int64_t rows, int64_t width, F f) {
  for (int64_t row = 0; row < rows; row += kPanel)
    f(row, rows - row < kPanel ? rows - row : kPanel, row * width);
}

void pack_query(const float* query, int64_t rows, int64_t width, float* packed) {
  each_panel(rows, width, [&](int64_t row, int64_t count, int64_t at) {
    pack(query + row * width, width, count, width, vectors_for(count) * kFloats, packed + at);
  });
}

void score(const MaxSimRequest& p, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    p.out[i] = p.first[i] < p.first[i + 1] ? 0.0F : kEmptyDocument;
  each_panel(p.query_rows, p.width, [&](int64_t, int64_t rows, int64_t at) {
    with_vectors(rows,
                 [&]<int kVectors> { add_panel<kVectors>(p, begin, end, p.query + at, rows); });
  });
}

}  // namespace

const MaxSimKernels maxsim_kernels = {pack_query, score};

}  // namespace posenc::kernels::inference::POSENC_ISA
