#include "functional/embed/fused.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "functional/dispatch.h"
#include "functional/dropout/generator.h"
#include "functional/embed/backward.h"
#include "kernels/dispatch.h"
#include "platform/processor.h"
#include "torch_internals/fresh_memory.h"
#include "torch_internals/profiled.h"
#include "torch_internals/shortcut.h"

namespace posenc::functional {
namespace {

namespace kernel = kernels::embed;

constexpr int64_t kGrainElements = 32768;
// Positions per block. A block is processed for all sequences of a batch before the next block, so
// that its rows of the table stay in the cache while the output streams past.
constexpr int64_t kPositionBlock = 64;

using Run = void (*)(const kernel::GatherRequest&, int64_t, int64_t);

// Whether to go through the output by blocks of positions: with several long sequences, and a table
// that does not fit in the cache.
bool pays_position_blocks(const kernel::GatherRequest& g, int64_t table_row_bytes) {
  const kernel::Positions& p = g.positions;
  return g.stream && p.table != nullptr && p.ids.data == nullptr && p.divide == 1 &&
         p.count < g.tokens && p.count * table_row_bytes > platform::caches().level2;
}

void run(Run gather, const kernel::GatherRequest& g, bool by_position) {
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

// Allocates the result, (..., D).
at::Tensor output_for(const at::Tensor& ids, int64_t dim, at::ScalarType dtype) {
  at::DimVector sizes(ids.sizes());
  sizes.push_back(dim);
  return torch_internals::fresh_output(sizes, dtype);
}

void run_without_dropout(const EmbedPlan& plan) {
  const kernel::GatherRequest& g = plan.gather;
  run(kernels::chosen().gather.gather[static_cast<int>(plan.type)], g,
      pays_position_blocks(g, g.dim * kernel::table_element_size(plan.type)));
}

void run_with_dropout(EmbedPlan& plan, double p, at::ScalarType dtype, at::Tensor& mask) {
  const bool exact = rounds_once(plan.type);
  const at::ScalarType drawn_as = exact ? at::kFloat : dtype;
  kernel::GatherRequest& g = plan.gather;
  mask = torch_internals::fresh_output({mask_bytes(g.tokens * g.dim)}, at::kByte);
  g.kept = {mask.const_data_ptr<uint8_t>(), kept_factor(1.0 - p, drawn_as)};
  {
    DropoutBits bits(1.0 - p, drawn_as, mask.data_ptr<uint8_t>());
    if (worth_threads(g.tokens * g.dim)) {
      const auto gather = kernels::chosen().gather.gather[static_cast<int>(plan.type)];
      const int64_t chunk = 64 * std::max<int64_t>(1, kGrainElements / (64 * g.dim));  // in tokens
      draw_while_used(bits, g.tokens * g.dim, chunk * g.dim,
                      [&](int64_t begin, int64_t end) { gather(g, begin / g.dim, end / g.dim); });
      return;
    }
    bits.draw(g.tokens * g.dim);
  }
  run_without_dropout(plan);
}

}  // namespace

at::Tensor embed_fused(EmbedPlan& plan, const at::Tensor& ids, const at::Tensor& weight,
                       const at::Tensor& table, const EmbedFuncOptions& options,
                       const at::Tensor& out) {
  kernel::GatherRequest& g = plan.gather;
  const torch_internals::Profiled profiled(out.defined() ? "posenc::embed_out" : "posenc::embed",
                                           ids, weight, table);
  if (out.defined()) torch_internals::note_write(out);
  at::Tensor result = out.defined() ? out : output_for(ids, g.dim, weight.scalar_type());
  g.out = result.data_ptr();
  g.stream = g.tokens * g.dim * kernel::element_size(plan.type) >= platform::caches().stream_bytes;
  at::Tensor mask;
  if (plan.drops) {
    run_with_dropout(plan, options.dropout(), weight.scalar_type(), mask);
  } else {
    run_without_dropout(plan);
  }
  if (plan.is_recorded) {
    record(result, plan.ids_copy.defined() ? plan.ids_copy : ids, weight, plan, mask,
           options.sparse());
  }
  return result;
}

}  // namespace posenc::functional
