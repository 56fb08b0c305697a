#include "functional/embed/fused.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "functional/embed/backward.h"
#include "functional/embed/dropout_bits.h"
#include "functional/embed/memory.h"
#include "functional/embed/plan.h"
#include "kernels/caches.h"
#include "torch_internals/profiled.h"
#include "torch_internals/shortcut.h"

namespace posenc::functional {
namespace {

namespace kernel = kernels::embed;

constexpr int64_t kGrainElements = 32768;
// So many positions of all sequences of a batch come before the next ones: their rows of the table
// then stay in the cache while the output streams past it.
constexpr int64_t kPositionBlock = 64;

using Run = void (*)(const kernel::Gather&, int64_t, int64_t);

// Several long sequences with one table that no cache holds beside the output.
bool pays_position_blocks(const kernel::Gather& g, int64_t table_row_bytes) {
  const kernel::Positions& p = g.positions;
  return g.stream && p.table != nullptr && p.ids.data == nullptr && p.divide == 1 &&
         p.count < g.tokens && p.count * table_row_bytes > kernels::caches().level2;
}

void run(Run gather, const kernel::Gather& g, bool by_position) {
  const int64_t length = g.positions.count;
  const auto blocks = [&](int64_t begin, int64_t end) {  // positions, in every sequence
    for (int64_t from = begin; from < end; from += kPositionBlock) {
      const int64_t to = std::min(from + kPositionBlock, end);
      for (int64_t row = 0; row < g.tokens; row += length) gather(g, row + from, row + to);
    }
  };
  const auto tokens = [&](int64_t begin, int64_t end) { gather(g, begin, end); };
  if (!worth_threads(g.tokens * g.dim)) {
    by_position ? blocks(0, length) : tokens(0, g.tokens);
  } else if (by_position) {
    at::parallel_for(0, length, kPositionBlock, blocks);
  } else {
    at::parallel_for(0, g.tokens, std::max<int64_t>(1, kGrainElements / g.dim), tokens);
  }
}

// Sizes of a result, (..., D).
at::Tensor output_for(const at::Tensor& ids, int64_t dim, at::ScalarType dtype) {
  at::DimVector sizes(ids.sizes());
  sizes.push_back(dim);
  return fresh_output(sizes, dtype);
}

void run_without_dropout(const EmbedPlan& plan) {
  const kernel::Gather& g = plan.gather;
  run(kernel::kernels().gather.gather[static_cast<int>(plan.type)], g,
      pays_position_blocks(g, g.dim * kernel::table_element_size(plan.type)));
}

// False where ATen's bits cannot be had, before anything is drawn.
bool run_with_dropout(EmbedPlan& plan, double p, at::ScalarType dtype, at::Tensor& mask) {
  const bool exact = rounds_once(plan.type);
  const at::ScalarType drawn_as = exact ? at::kFloat : dtype;
  if (!has_dropout_bits(drawn_as)) return false;
  kernel::Gather& g = plan.gather;
  mask = fresh_output({kernel::mask_bytes(g.tokens * g.dim)}, at::kByte);
  g.kept = {mask.const_data_ptr<uint8_t>(), kept_factor(1.0 - p, drawn_as)};
  {
    DropoutBits bits(1.0 - p, drawn_as, mask.data_ptr<uint8_t>());
    if (!bits.usable()) return false;
    if (worth_threads(g.tokens * g.dim)) {
      const auto gather = kernel::kernels().gather.gather[static_cast<int>(plan.type)];
      const int64_t chunk = 64 * std::max<int64_t>(1, kGrainElements / (64 * g.dim));  // tokens
      draw_while_used(bits, g.tokens * g.dim, chunk * g.dim,
                      [&](int64_t begin, int64_t end) { gather(g, begin / g.dim, end / g.dim); });
      return true;
    }
    bits.draw(g.tokens * g.dim);
  }
  run_without_dropout(plan);
  return true;
}

}  // namespace

at::Tensor embed_fused(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                       const EmbedFuncOptions& options, const at::Tensor& out) {
  EmbedPlan plan;
  if (!torch_internals::dispatches_plainly() || !make_plan(ids, weight, table, options, plan))
    return {};
  kernel::Gather& g = plan.gather;
  const bool recorded = torch_internals::is_recorded(weight);
  if (recorded && g.tokens > INT32_MAX) return {};
  const torch_internals::Profiled profiled(out.defined() ? "posenc::embed_out" : "posenc::embed",
                                           ids, weight, table);
  if (out.defined()) torch_internals::note_write(out);
  at::Tensor result = out.defined() ? out : output_for(ids, g.dim, weight.scalar_type());
  g.out = result.data_ptr();
  g.stream = g.tokens * g.dim * kernel::element_size(plan.type) >= kernels::caches().stream_bytes;
  at::Tensor mask;
  if (!options.training() || options.dropout() == 0.0) {
    run_without_dropout(plan);
  } else if (!run_with_dropout(plan, options.dropout(), weight.scalar_type(), mask)) {
    return {};
  }
  if (recorded) {
    record(result, plan.ids_copy.defined() ? plan.ids_copy : ids, weight, plan, mask,
           options.sparse());
  }
  return result;
}

}  // namespace posenc::functional
