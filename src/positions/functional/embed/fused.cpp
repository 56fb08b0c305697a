#include "positions/functional/embed/fused.h"

#include <algorithm>

#include "base/platform/processor.h"
#include "core/torch_internals/fresh_memory.h"
#include "core/torch_internals/parts.h"
#include "core/torch_internals/shortcut.h"
#include "kernels/dispatch.h"
#include "positions/functional/dispatch.h"
#include "positions/functional/dropout/generator.h"

namespace posenc::functional {
namespace {

namespace kernel = kernels::embed;

// Positions per block. A block is processed for all sequences of a batch before the next block, so
// that its rows of the table stay in the cache while the output streams past.
constexpr int64_t kPositionBlock = 64;

// Whether the gather kernel, which can stream, computes the plan.
bool gathers(const kernel::EmbedRequest& q) { return q.norm.weight == nullptr && q.tables <= 1; }

// The elements that are worth a task of their own: fewer where there is more to do for each.
int64_t grain_elements(const kernel::EmbedRequest& q) { return gathers(q) ? 32768 : 16384; }

// Whether to go through the output by blocks of positions: with several long sequences, and a table
// that does not fit in the cache.
bool pays_position_blocks(const kernel::EmbedRequest& q, int64_t table_row_bytes) {
  const kernel::AddedRows& p = q.added[0];
  return q.stream && q.tables == 1 && p.ids.data == nullptr && p.divide == 1 &&
         p.count < q.tokens && p.count * table_row_bytes > platform::caches().level2;
}

class EmbedPass {
 public:
  explicit EmbedPass(EmbedPlan& plan)
      : plan_(plan),
        q_(plan.request),
        kernel_(gathers(q_)
                    ? kernels::chosen().gather.gather[static_cast<int>(plan.type)]
                    : kernels::chosen().embeddings.embeddings[static_cast<int>(plan.rounding)]) {}

  void run() const {
    const bool by_position =
        pays_position_blocks(q_, q_.dim * kernel::table_element_size(plan_.type));
    const auto tokens = [&](int64_t begin, int64_t end) { kernel_(q_, begin, end); };
    const auto blocks = [&](int64_t begin, int64_t end) { run_positions(begin, end); };
    if (!worth_threads(q_.tokens * q_.dim)) {
      by_position ? blocks(0, q_.added[0].count) : tokens(0, q_.tokens);
    } else if (by_position) {
      torch_internals::parallel_parts(0, q_.added[0].count, kPositionBlock, blocks);
    } else {
      torch_internals::parallel_parts(0, q_.tokens,
                                      std::max<int64_t>(1, grain_elements(q_) / q_.dim), tokens);
    }
  }

  // Draws the bits of dropout into a new mask, and runs the kernel on tokens whose bits are drawn.
  at::Tensor run_with_dropout(double p) const {
    const at::ScalarType drawn_as = plan_.sum_type();
    const int64_t elements = q_.tokens * q_.dim;
    const at::Tensor mask = torch_internals::fresh_output({mask_bytes(elements)}, at::kByte);
    q_.kept = {mask.const_data_ptr<uint8_t>(), kept_factor(1.0 - p, drawn_as)};
    {
      DropoutBits bits(1.0 - p, drawn_as, mask.data_ptr<uint8_t>());
      if (worth_threads(elements)) {
        const int64_t chunk = 64 * std::max<int64_t>(1, grain_elements(q_) / (64 * q_.dim));
        draw_while_used(bits, elements, chunk * q_.dim, [&](int64_t begin, int64_t end) {
          kernel_(q_, begin / q_.dim, end / q_.dim);
        });
        return mask;
      }
      bits.draw(elements);
    }
    run();
    return mask;
  }

 private:
  // Positions [begin, end), in every sequence.
  void run_positions(int64_t begin, int64_t end) const {
    for (int64_t from = begin; from < end; from += kPositionBlock) {
      const int64_t to = std::min(from + kPositionBlock, end);
      for (int64_t row = 0; row < q_.tokens; row += q_.added[0].count)
        kernel_(q_, row + from, row + to);
    }
  }

  const EmbedPlan& plan_;
  kernel::EmbedRequest& q_;
  kernel::EmbedKernel kernel_;
};

}  // namespace

at::Tensor embed_fused(EmbedPlan& plan, const EmbedNames& names, double dropout,
                       const at::Tensor& out) {
  kernel::EmbedRequest& q = plan.request;
  at::DimVector sizes(plan.tokens.ids->sizes());
  sizes.push_back(q.dim);
  if (out.defined()) torch_internals::note_write(out);
  at::Tensor result =
      out.defined() ? out : torch_internals::fresh_output(sizes, plan.tokens.weight->scalar_type());
  q.out = result.data_ptr();
  q.stream = gathers(q) &&
             q.tokens * q.dim * kernel::element_size(plan.type) >= platform::caches().stream_bytes;
  EmbedSaved saved;
  if (plan.records_norm) {
    saved.sum = torch_internals::fresh_output(sizes, at::kFloat);
    sizes.back() = 1;
    saved.mean = torch_internals::fresh_output(sizes, at::kFloat);
    saved.rstd = torch_internals::fresh_output(sizes, at::kFloat);
    q.norm.sum = saved.sum.data_ptr<float>();
    q.norm.mean = saved.mean.data_ptr<float>();
    q.norm.rstd = saved.rstd.data_ptr<float>();
  }
  const EmbedPass pass(plan);
  if (plan.drops) {
    saved.mask = pass.run_with_dropout(dropout);
  } else {
    pass.run();
  }
  if (plan.records_tables || plan.records_norm) record(result, plan, names, saved);
  return result;
}

}  // namespace posenc::functional
