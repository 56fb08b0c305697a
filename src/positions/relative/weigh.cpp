// posenc-budget: one pass: its operands, its blocks of rows

#include "positions/relative/weigh.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/platform/memory.h"
#include "core/torch_internals/fresh_memory.h"
#include "core/torch_internals/profiled.h"
#include "core/torch_internals/shortcut.h"
#include "kernels/dispatch.h"
#include "positions/relative/products.h"

namespace posenc::relative {
namespace {

namespace kernel = kernels::inference;
using platform::scratch;
using platform::Scratch;

// Queries whose products stay in the L2 cache beside their keys; a multiple of the panels.
constexpr int64_t kRowsAtOnce = 2 * kernel::kPanelRows;
constexpr int64_t kGrainOfProducts = int64_t{1} << 18;  // multiplications that are worth a thread

bool is_float(const at::Tensor& x) {
  return x.scalar_type() == at::kFloat && torch_internals::is_plain(x);
}

// Calls f(tensor) for each defined tensor of the rules, until it returns false.
template <typename F>
bool each_tensor(const at::Tensor& q, const at::Tensor& k, const Rules& rules, F f) {
  const auto of = [&](const at::Tensor& x) { return !x.defined() || f(x); };
  if (!of(q) || !of(k) || !of(rules.mask)) return false;
  if (const auto* pairs = std::get_if<at::Tensor>(&rules.term)) return of(*pairs);
  if (const auto* row = std::get_if<Distances>(&rules.term)) return of(row->entries);
  const auto& vectors = std::get<DistanceVectors>(rules.term);
  return of(vectors.x) && of(vectors.rows);
}

// A tensor of rows whose elements are neighbours, for each item: each index of the axes of scores
// before those of queries and keys.
template <typename Element>
struct Operand {
  at::Tensor held;
  const Element* data = nullptr;
  std::vector<int64_t> first;  // of each item
  int64_t stride = 0;          // of rows

  bool exists() const { return data != nullptr; }
  const Element* row(int64_t item, int64_t i) const {
    return data + first[static_cast<std::size_t>(item)] + i * stride;
  }
};

// `columns` is the size of the last axis. Axes of one element are those of all items and rows.
template <typename Element>
Operand<Element> operand_of(const at::Tensor& x, const std::vector<int64_t>& items,
                            int64_t columns) {
  Operand<Element> made;
  if (!x.defined()) return made;
  at::Tensor rows = x;
  while (rows.dim() < 2) rows = rows.unsqueeze(0);
  if (rows.size(-1) != columns) {
    std::vector<int64_t> sizes = rows.sizes().vec();
    sizes.back() = columns;
    rows = rows.expand(sizes).contiguous();
  } else if (rows.stride(-1) != 1 && columns > 1) {
    rows = rows.contiguous();
  }
  made.stride = rows.size(-2) > 1 ? rows.stride(-2) : 0;
  made.first = {0};
  const int64_t before = static_cast<int64_t>(items.size()) - (rows.dim() - 2);
  for (std::size_t axis = 0; axis < items.size(); ++axis) {
    const int64_t own = static_cast<int64_t>(axis) - before;
    const int64_t step = own >= 0 && rows.size(own) > 1 ? rows.stride(own) : 0;
    std::vector<int64_t> next;
    next.reserve(made.first.size() * static_cast<std::size_t>(items[axis]));
    for (const int64_t at : made.first) {
      for (int64_t i = 0; i < items[axis]; ++i) next.push_back(at + i * step);
    }
    made.first = std::move(next);
  }
  made.data = rows.const_data_ptr<Element>();
  made.held = std::move(rows);
  return made;
}

// Rows that follow each other without gaps, of which vectors of a product are read.
at::Tensor dense_rows(const at::Tensor& x) {
  const bool is_dense = x.stride(-1) == 1 && x.stride(-2) == x.size(-1);
  return is_dense || x.size(-2) <= 1 ? x : x.contiguous();
}

// What all rows have in common.
kernel::WeightsRequest request_of(const Rules& rules, int64_t width, int64_t keys, Weighed kind) {
  const Scoring& scoring = rules.scoring;
  kernel::WeightsRequest request = {};
  request.keys = request.products_stride = request.out_stride = keys;
  request.is_softmax = kind == Weighed::Weights;
  request.masked_row = rules.masked_row;
  const double square = squared_scale(scoring, width);
  request.divides =
      !rules.scale && kind == Weighed::Scores && scoring.scale_by != ScaleBy::Multiply;
  request.scale = static_cast<float>(
      request.divides ? std::sqrt(square) : rules.scale.value_or(std::pow(square, -0.5)));
  request.scales_sum = scoring.scale_of == ScaleOf::ScoresAndTerm;
  request.scales_products = !request.scales_sum && scoring.scale_of != ScaleOf::Nothing;
  request.scales_term = scoring.scales_term;
  switch (scoring.masking) {
    case Masking::WithTerm: request.added_mask = kernel::AddedMask::WithTerm; break;
    case Masking::Twice: request.added_mask = kernel::AddedMask::Twice; break;
    case Masking::FillLowest: request.fill = std::numeric_limits<float>::lowest(); break;
    case Masking::AfterTerm: break;
  }
  return request;
}

class Pass {
 public:
  Pass(const std::vector<int64_t>& items, int64_t queries, int64_t keys, int64_t width,
       const Rules& rules, Weighed kind)
      : items_(items),
        queries_(queries),
        keys_(keys),
        width_(width),
        is_causal_(rules.is_causal),
        request_(request_of(rules, width, keys, kind)) {
    if (rules.scoring.masking == Masking::FillLowest) {
      allowed_ = operand_of<bool>(rules.mask, items, keys);
    } else {
      mask_ = operand_of<float>(rules.mask, items, keys);
    }
    if (const auto* pairs = std::get_if<at::Tensor>(&rules.term))
      term_ = operand_of<float>(*pairs, items, keys);
    if (const auto* row = std::get_if<Distances>(&rules.term))
      distances_ = operand_of<float>(row->entries.unsqueeze(1), items, queries + keys - 1);
    if (const auto* vectors = std::get_if<DistanceVectors>(&rules.term)) {
      vector_width_ = vectors->x.size(-1);
      vector_x_ = operand_of<float>(vectors->x, items, vector_width_);
      vector_rows_ = operand_of<float>(dense_rows(vectors->rows), items, vector_width_);
      origin_ = vectors->index.origin;
    }
  }

  void multiply(const at::Tensor& q, const at::Tensor& k) {
    q_ = operand_of<float>(q, items_, width_);
    k_ = operand_of<float>(k, items_, width_);
  }

  void run(float* out) const {
    int64_t items = 1;
    for (const int64_t size : items_) items *= size;
    const int64_t blocks = (queries_ + kRowsAtOnce - 1) / kRowsAtOnce;
    const int64_t products = std::min(kRowsAtOnce, queries_) * keys_ * (width_ + 1);
    const int64_t grain = std::max<int64_t>(1, kGrainOfProducts / products);
    at::parallel_for(0, items * blocks, grain, [&](int64_t begin, int64_t end) {
      int64_t copied = -1;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t item = task / blocks, first = task % blocks * kRowsAtOnce;
        const int64_t rows = std::min(kRowsAtOnce, queries_ - first);
        float* const to = out + (item * queries_ + first) * keys_;
        if (q_.exists()) {
          const float* const keys = keys_of(item, item == copied);
          copied = item;
          relative::multiply(q_.row(item, first), q_.stride, rows, keys, width_, keys_, to);
        }
        weigh(item, first, rows, to);
      }
    });
  }

 private:
  // The keys of an item without gaps.
  const float* keys_of(int64_t item, bool is_copied) const {
    if (k_.stride == width_ || keys_ == 1) return k_.row(item, 0);
    float* const copy = scratch(Scratch::Hidden, keys_ * width_);
    if (is_copied) return copy;
    for (int64_t j = 0; j < keys_; ++j)
      std::memcpy(copy + j * width_, k_.row(item, j),
                  sizeof(float) * static_cast<std::size_t>(width_));
    return copy;
  }

  // Rows [first, first + rows) of an item, whose products are in `to`.
  void weigh(int64_t item, int64_t first, int64_t rows, float* to) const {
    kernel::WeightsRequest request = request_;
    request.products = request.out = to;
    request.rows = rows;
    if (is_causal_) request.first_causal = first;
    if (term_.exists()) {
      request.term = term_.row(item, first);
      request.term_stride = term_.stride;
    } else if (distances_.exists()) {
      request.term = distances_.row(item, 0) + queries_ - 1 - first;
      request.term_stride = -1;
    } else if (vector_x_.exists()) {
      // Only the rows that a pair of the block has: each query reads them one place before the one
      // above.
      const int64_t count = keys_ + rows - 1, lowest = origin_ - (first + rows - 1);
      float* const products = scratch(Scratch::Branch, rows * count);
      relative::multiply(vector_x_.row(item, first), vector_x_.stride, rows,
                         vector_rows_.row(item, 0) + lowest * vector_width_, vector_width_, count,
                         products);
      request.term = products + rows - 1;
      request.term_stride = count - 1;
    }
    if (mask_.exists()) {
      request.mask = mask_.row(item, first);
      request.mask_stride = mask_.stride;
    }
    if (allowed_.exists()) {
      request.allowed = allowed_.row(item, first);
      request.allowed_stride = allowed_.stride;
    }
    kernels::chosen().weights.weigh(request, 0, rows);
  }

  const std::vector<int64_t>& items_;
  const int64_t queries_, keys_, width_;
  const bool is_causal_;
  const kernel::WeightsRequest request_;
  Operand<float> q_, k_, term_, distances_, vector_x_, vector_rows_, mask_;
  Operand<bool> allowed_;
  int64_t origin_ = 0, vector_width_ = 0;  // which need not be that of the queries
};

}  // namespace

bool can_weigh(const at::Tensor& q, const at::Tensor& k, const Rules& rules) {
  if (!torch_internals::dispatches_plainly() || q.size(-1) == 0) return false;
  const auto* const vectors = std::get_if<DistanceVectors>(&rules.term);
  if (vectors != nullptr && vectors->x.size(-1) == 0) return false;
  const bool fills = rules.scoring.masking == Masking::FillLowest;
  return each_tensor(q, k, rules, [&](const at::Tensor& x) {
    if (fills && x.is_same(rules.mask))
      return x.scalar_type() == at::kBool && torch_internals::is_plain(x);
    return is_float(x);
  });
}

bool is_recorded(const at::Tensor& q, const at::Tensor& k, const Rules& rules) {
  return !each_tensor(q, k, rules,
                      [](const at::Tensor& x) { return !torch_internals::is_recorded(x); });
}

at::Tensor weighed(const at::Tensor& q, const at::Tensor& k, const Rules& rules, Weighed kind) {
  const torch_internals::Profiled profiled(
      kind == Weighed::Weights ? "posenc::relative_weights" : "posenc::relative_scores", q, k);
  const std::vector<int64_t> sizes = sizes_of_scores(q, k), items(sizes.begin(), sizes.end() - 2);
  const at::Tensor out = torch_internals::fresh_output(sizes, at::kFloat);
  if (out.numel() == 0) return out;
  Pass pass(items, q.size(-2), k.size(-2), q.size(-1), rules, kind);
  pass.multiply(q, k);
  pass.run(out.data_ptr<float>());
  return out;
}

void finish_scores_(const at::Tensor& products, const Rules& rules, int64_t width) {
  if (products.numel() == 0) return;
  const std::vector<int64_t> items = products.sizes().slice(0, products.dim() - 2).vec();
  const Pass pass(items, products.size(-2), products.size(-1), width, rules, Weighed::Scores);
  pass.run(products.data_ptr<float>());
}

}  // namespace posenc::relative
