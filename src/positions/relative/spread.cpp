#include "positions/relative/spread.h"

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/torch_internals/backward_node.h"
#include "core/torch_internals/fresh_memory.h"
#include "core/torch_internals/profiled.h"
#include "core/torch_internals/shortcut.h"

namespace posenc::relative {
namespace {

constexpr int64_t kGrain = int64_t{1} << 15;  // entries that are worth a thread

struct Spread {
  int64_t heads, queries, keys;
  int64_t distances() const { return queries + keys - 1; }
  int64_t grain(int64_t entries) const {
    return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, entries));
  }
};

// The entries of all distances, one head after another, (1, H, 1, R).
at::Tensor entries_of(const at::Tensor& table, const int64_t* rows, const Spread& spread) {
  const at::Tensor entries =
      at::empty({1, spread.heads, 1, spread.distances()}, table.options().requires_grad(false));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, table.scalar_type(), "spread", [&] {
    const scalar_t* from = table.const_data_ptr<scalar_t>();
    const int64_t down = table.stride(0), across = table.stride(1);
    scalar_t* to = entries.data_ptr<scalar_t>();
    for (int64_t head = 0; head < spread.heads; ++head) {
      const scalar_t* column = from + head * across;
      for (int64_t i = 0; i < spread.distances(); ++i) *to++ = column[rows[i] * down];
    }
  });
  return entries;
}

// Each query's entries are a part of its head's, which begins one later for the query before.
at::Tensor spread_out(const at::Tensor& entries, const Spread& spread) {
  if (spread.queries == 1) return entries;
  const at::Tensor out = torch_internals::fresh_output(
      {1, spread.heads, spread.queries, spread.keys}, entries.scalar_type());
  const auto size = static_cast<int64_t>(entries.element_size());
  const char* from = static_cast<const char*>(entries.const_data_ptr());
  char* to = static_cast<char*>(out.data_ptr());
  const auto bytes = static_cast<std::size_t>(spread.keys * size);
  at::parallel_for(0, spread.heads * spread.queries, spread.grain(spread.keys),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t head = i / spread.queries, query = i % spread.queries;
                       const int64_t first = head * spread.distances() + spread.queries - 1 - query;
                       std::memcpy(to + i * spread.keys * size, from + first * size, bytes);
                     }
                   });
  return out;
}

// The sums along the diagonals of a gradient (1, H, Q, K), in the order of the queries, and of
// these the sums of each row of the table.
template <typename Number>
void add_up(const at::Tensor& grad, const int64_t* rows, const Spread& spread,
            const at::Tensor& out) {
  using Sum = at::opmath_type<Number>;
  const Number* from = grad.const_data_ptr<Number>();
  Number* to = out.data_ptr<Number>();
  const int64_t count = out.size(0), distances = spread.distances();
  at::parallel_for(0, spread.heads, 1, [&](int64_t begin, int64_t end) {
    std::vector<Sum> diagonals(static_cast<std::size_t>(distances));
    std::vector<Sum> sums(static_cast<std::size_t>(count));
    for (int64_t head = begin; head < end; ++head) {
      std::fill(diagonals.begin(), diagonals.end(), Sum{0});
      std::fill(sums.begin(), sums.end(), Sum{0});
      for (int64_t query = 0; query < spread.queries; ++query) {
        const Number* line = from + (head * spread.queries + query) * spread.keys;
        Sum* sum = diagonals.data() + spread.queries - 1 - query;
        for (int64_t key = 0; key < spread.keys; ++key) sum[key] += static_cast<Sum>(line[key]);
      }
      for (int64_t i = 0; i < distances; ++i)
        sums[static_cast<std::size_t>(rows[i])] += diagonals[static_cast<std::size_t>(i)];
      for (int64_t row = 0; row < count; ++row)
        to[row * spread.heads + head] = static_cast<Number>(sums[static_cast<std::size_t>(row)]);
    }
  });
}

struct SpreadBackward : torch_internals::BackwardNode {
  SpreadBackward(const at::Tensor& table, const at::Tensor& rows_of, const Spread& of)
      : BackwardNode("RelativePositionBiasBackward"),
        rows(rows_of),
        spread(of),
        table_rows(table.size(0)),
        dtype(table.scalar_type()) {}
  torch_internals::Gradients backward(const at::Tensor& grad) override;
  void release() override { rows.reset(); }

  at::Tensor rows;  // of the distances
  const Spread spread;
  const int64_t table_rows;
  const at::ScalarType dtype;
};

torch_internals::Gradients SpreadBackward::backward(const at::Tensor& grad) {
  const torch_internals::Profiled profiled("posenc::relative_position_bias_backward", grad);
  torch_internals::check_not_released(rows.defined());
  const at::TensorOptions options(dtype);
  if (!at::GradMode::is_enabled() && torch_internals::dispatches_plainly() &&
      torch_internals::is_plain(grad) && grad.scalar_type() == dtype &&
      grad.sizes() == at::IntArrayRef({1, spread.heads, spread.queries, spread.keys})) {
    const at::Tensor out = at::empty({table_rows, spread.heads}, options);
    const at::Tensor whole = grad.contiguous();
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, dtype, "spread_backward", [&] {
      add_up<scalar_t>(whole, rows.const_data_ptr<int64_t>(), spread, out);
    });
    return {out};
  }
  // The composition is linear, and its gradient can itself be differentiated.
  const bool again = at::GradMode::is_enabled();
  const at::AutoGradMode recording(true);
  const at::Tensor table = at::zeros({table_rows, spread.heads}, options).requires_grad_();
  const at::Tensor bias = composed_bias(table, rows, spread.queries, spread.keys);
  return {torch::autograd::grad({bias}, {table}, {grad}, again, again)[0]};
}

}  // namespace

bool can_spread(const at::Tensor& table) {
  switch (table.scalar_type()) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
    case at::kBFloat16: break;
    default: return false;
  }
  return torch_internals::dispatches_plainly() && torch_internals::is_plain(table);
}

at::Tensor spread_bias(const at::Tensor& table, const at::Tensor& rows_of, int64_t queries,
                       int64_t keys) {
  const torch_internals::Profiled profiled("posenc::relative_position_bias", table);
  const Spread spread{table.size(1), queries, keys};
  const at::Tensor out =
      spread_out(entries_of(table, rows_of.const_data_ptr<int64_t>(), spread), spread);
  if (torch_internals::is_recorded(table))
    torch_internals::set_history(
        out, torch_internals::make_node<SpreadBackward>(table, rows_of, spread), {table});
  return out;
}

at::Tensor composed_bias(const at::Tensor& table, const at::Tensor& rows_of, int64_t queries,
                         int64_t keys) {
  const at::Tensor entries = table.t().index_select(1, rows_of);  // (H, R)
  const at::Tensor parts = entries.unfold(1, keys, 1);            // (H, Q, K), a view
  // index_select and not flip, whose result has the order of the view's strides.
  return parts.index_select(1, at::arange(queries - 1, -1, -1, rows_of.options())).unsqueeze(0);
}

}  // namespace posenc::relative
