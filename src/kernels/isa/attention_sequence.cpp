// Attention of all queries of a sequence over its keys. A block of a head's queries forms a panel
// (panels.h), and so do their scores, key by key: each operation on scores is done for all queries
// of the block at once, so that nothing is summed across a register, and nothing is transposed
// before the result. Compiled once per instruction set.
//
// The reference path is at::scaled_dot_product_attention; sums are in key order (kSummedKeys).
#include "kernels/isa/attention_values.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

void attend_sequences(const SequenceAttentionRequest& p, int64_t begin, int64_t end,
                      float* scratch) {
  each_item(p, begin, end,
            [&](int64_t head, int64_t sequence) { attend_item(p, head, sequence, scratch); });
}

}  // namespace

const SequenceAttentionKernels attention_sequence_kernels = {attend_sequences};

}  // namespace posenc::kernels::inference::POSENC_ISA
