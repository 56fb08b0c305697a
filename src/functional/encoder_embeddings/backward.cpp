#include "functional/encoder_embeddings/backward.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <numeric>
#include <vector>

#include "functional/dropout/generator.h"
#include "functional/row_gradient.h"
#include "torch_internals/backward_node.h"
#include "torch_internals/profiled.h"
#include "torch_internals/shortcut.h"

// There are two nodes. The norm and the dropout are one, whose input is the output of the other,
// the sum of rows. Each node saves what ATen's operations would save, and the gradient of the first
// can itself be differentiated, because the sum of rows that it saves is part of the graph.
namespace posenc::functional {
namespace {

namespace kernel = kernels::embed;
using torch_internals::check_not_released;
using torch_internals::Gradients;
using torch_internals::save_for_backward;
using torch_internals::SavedVariable;

// Whether a kernel may read the gradient, and autograd does not record the operation.
bool is_plain_gradient(const at::Tensor& grad) {
  return !at::GradMode::is_enabled() && torch_internals::dispatches_plainly() &&
         torch_internals::is_plain(grad) && grad.scalar_type() == at::kFloat;
}

// Only the engine compares the gradient's shape with the result's.
void check_embeddings_gradient(const at::Tensor& grad, int64_t tokens, int64_t dim) {
  TORCH_CHECK(grad.numel() == tokens * dim, "[EncoderEmbeddings] backward needs a gradient of ",
              dim, " channels for each of ", tokens, " tokens. Got ", grad.sizes());
}

// The norm and the dropout of the embeddings, each present or not.
struct EmbeddingsNormBackward : torch_internals::BackwardNode {
  EmbeddingsNormBackward() : BackwardNode("EncoderEmbeddingsNormBackward") {}
  Gradients backward(const at::Tensor& incoming) override;
  void release() override {
    x.reset_data();
    weight.reset_data();
    bias.reset_data();
    mask.reset();
    mean.reset();
    rstd.reset();
  }
  at::Tensor before_dropout(const at::Tensor& grad) const;

  SavedVariable x, weight, bias;  // x: the sum of rows
  at::Tensor mask, mean, rstd;
  kernel::DropoutMask kept;
  int64_t tokens = 0, dim = 0;
  bool norms = false;
};

at::Tensor EmbeddingsNormBackward::before_dropout(const at::Tensor& grad) const {
  if (kept.bits == nullptr) return grad;
  check_not_released(mask.defined());
  if (!is_plain_gradient(grad)) return grad * noise_of(mask, kept.factor, grad.contiguous());
  const at::Tensor from = grad.contiguous(), out = at::empty_like(from);
  run_dropout(kernel::Type::Float32, {from.const_data_ptr(), kept, out.data_ptr()}, from.numel());
  return out;
}

Gradients EmbeddingsNormBackward::backward(const at::Tensor& incoming) {
  const torch_internals::Profiled profiled("posenc::encoder_embeddings_norm_backward", incoming);
  check_embeddings_gradient(incoming, tokens, dim);
  const at::Tensor grad = before_dropout(incoming);
  if (!norms) return {grad};
  const at::Tensor sum = x.unpack();  // throws if the tensors have been released
  auto [of_sum, of_weight, of_bias] = at::native_layer_norm_backward(
      grad, sum, {dim}, mean, rstd, weight.unpack(), bias.unpack(), {wants(0), wants(1), wants(2)});
  return {std::move(of_sum), std::move(of_weight), std::move(of_bias)};
}

// A table, and which of its rows were added.
struct AddedRows {
  at::Tensor saved_ids() const;
  kernel::TokenGroups groups(const at::Tensor& saved) const;
  at::Tensor index(const at::Tensor& saved, const at::Tensor& grad) const;
  at::Tensor of_all(const at::Tensor& grad) const;

  EmbeddingsRows rows = EmbeddingsRows::Given;
  SavedVariable ids;
  int64_t count = 0;  // number of rows that are added, before they are repeated
  int64_t offset = 0, padding = -1;
  bool repeats = false;
  RowGradient table;
};

// The saved ids, or an undefined tensor if there are none. set_data() can replace a tensor's
// memory, sizes and dtype without a new version.
at::Tensor AddedRows::saved_ids() const {
  if (rows != EmbeddingsRows::Given) return {};
  at::Tensor saved = ids.unpack();
  TORCH_CHECK(saved.numel() == count, "[EncoderEmbeddings] backward needs the forward's ", count,
              " ids. Got ids ", saved.sizes());
  return saved;
}

bool is_readable_embeddings_index(const at::Tensor& ids) {
  return !ids.defined() || (torch_internals::is_plain(ids) && ids.is_contiguous() &&
                            (ids.scalar_type() == at::kLong || ids.scalar_type() == at::kInt));
}

kernel::TokenGroups AddedRows::groups(const at::Tensor& saved) const {
  if (rows == EmbeddingsRows::Given)
    return kernel::group_by_id({saved.const_data_ptr(), saved.scalar_type() == at::kLong}, count,
                               table.rows, padding);
  kernel::TokenGroups groups;
  groups.tokens.resize(static_cast<size_t>(count));
  std::iota(groups.tokens.begin(), groups.tokens.end(), 0);
  if (rows == EmbeddingsRows::First && padding != 0) {
    groups.ids = {0};
    groups.first = {0};
  } else if (rows == EmbeddingsRows::First) {
    groups.tokens.clear();
  } else {
    for (int64_t i = 0; i < count; ++i) {
      if (offset + i == padding) continue;
      groups.tokens[groups.ids.size()] = static_cast<int32_t>(i);
      groups.first.push_back(static_cast<int32_t>(groups.ids.size()));
      groups.ids.push_back(offset + i);
    }
    groups.tokens.resize(groups.ids.size());
  }
  groups.first.push_back(static_cast<int32_t>(groups.tokens.size()));
  return groups;
}

// The row of the table for each row of the gradient `grad`, a result of of_all().
at::Tensor AddedRows::index(const at::Tensor& saved, const at::Tensor& grad) const {
  const at::TensorOptions options(at::kLong);
  const at::Tensor flat = rows == EmbeddingsRows::Given ? saved
                          : rows == EmbeddingsRows::First
                              ? at::zeros({count}, options)
                              : at::arange(offset, offset + count, options);
  return flat.reshape(grad.sizes().slice(0, grad.dim() - 1));
}

at::Tensor AddedRows::of_all(const at::Tensor& grad) const {
  return repeats ? grad.reshape({-1, count, table.dim}).sum(0) : grad;
}

// The sum of rows. Its first table is that of the tokens.
struct EmbeddingsSumBackward : torch_internals::BackwardNode {
  EmbeddingsSumBackward() : BackwardNode("EncoderEmbeddingsBackward") {}
  Gradients backward(const at::Tensor& grad) override;
  void release() override {
    released = true;
    for (AddedRows& added : tables) added.ids.reset_data();
  }
  at::Tensor summed(const AddedRows& added, const at::Tensor& grad, const at::Tensor& saved);

  std::vector<AddedRows> tables;
  int64_t tokens = 0, dim = 0;
  bool released = false;
};

// The kernel's gradient of a table; undefined if it was added to the table's .grad.
at::Tensor EmbeddingsSumBackward::summed(const AddedRows& added, const at::Tensor& grad,
                                         const at::Tensor& saved) {
  const at::Tensor rows = added.of_all(grad).contiguous();
  const kernel::TokenGroups groups = added.groups(saved);
  if (&added == &tables[0]) {
    const int64_t sizes[] = {added.table.rows, dim};
    const torch_internals::GradAccess access(*this, sizes, at::kFloat);
    if (added.table.add_to(access, rows, groups)) return {};
  }
  return added.table.dense(rows, groups);
}

Gradients EmbeddingsSumBackward::backward(const at::Tensor& grad) {
  Gradients results(tables.size());
  const torch_internals::Profiled profiled("posenc::encoder_embeddings_backward", grad);
  check_not_released(!released);
  check_embeddings_gradient(grad, tokens, dim);
  const bool plain = is_plain_gradient(grad);
  for (size_t i = 0; i < tables.size(); ++i) {
    const AddedRows& added = tables[i];
    if (!wants(i)) continue;
    const at::Tensor saved = added.saved_ids();
    if (plain && is_readable_embeddings_index(saved)) {
      results[i] = summed(added, grad, saved);
      continue;
    }
    // The gradient that autograd computes for the composition; can itself be differentiated.
    const at::Tensor rows = added.of_all(grad);
    results[i] = at::embedding_backward(added.table.scale == 1.0 ? rows : rows * added.table.scale,
                                        added.index(saved, rows), added.table.rows, added.padding,
                                        /*scale_grad_by_freq=*/false, /*sparse=*/false);
  }
  return results;
}

AddedRows added_rows(const EmbeddingsTable& from, int64_t dim, int64_t count) {
  AddedRows added;
  added.rows = from.rows;
  added.count = count;
  added.padding = from.padding;
  added.repeats = from.repeats;
  added.table.rows = from.weight->sizes()[0];
  added.table.dim = dim;
  // Like at::embedding, saves ids only for a table that requires a gradient; other ids may be
  // overwritten.
  const at::Tensor* const ids = from.readable_ids();
  if (ids != nullptr && torch_internals::is_recorded(*from.weight))
    added.ids = save_for_backward(*ids);
  return added;
}

torch_internals::NodePointer<EmbeddingsSumBackward> sum_node(const EncoderEmbeddingsPlan& plan) {
  const kernel::EmbeddingsRequest& q = plan.request;
  auto node = torch_internals::make_node<EmbeddingsSumBackward>();
  node->tokens = q.tokens;
  node->dim = q.dim;
  node->tables.reserve(1 + kernel::kEmbeddingsTables);
  node->tables.push_back(added_rows(plan.tokens, q.dim, q.tokens));
  node->tables[0].table.scale = q.scale;
  std::vector<at::Tensor> inputs = {*plan.tokens.weight};
  for (int k = 0; k < q.tables; ++k) {
    const EmbeddingsTable& table = plan.added[k];
    const kernel::Positions& p = q.added[k];
    const bool first = table.rows == EmbeddingsRows::First;
    node->tables.push_back(added_rows(table, q.dim, first ? q.tokens : p.count));
    node->tables.back().offset = p.offset;
    inputs.push_back(*table.weight);
  }
  torch_internals::set_inputs(*node, inputs);
  return node;
}

}  // namespace

void record(const at::Tensor& out, const EncoderEmbeddingsPlan& plan,
            const EncoderEmbeddingsWeights& weights, const EmbeddingsSaved& saved) {
  const kernel::EmbeddingsRequest& q = plan.request;
  const bool norms = q.norm.weight != nullptr;
  if (!norms && !plan.drops) return torch_internals::set_output(sum_node(plan), out);
  auto node = torch_internals::make_node<EmbeddingsNormBackward>();
  node->tokens = q.tokens;
  node->dim = q.dim;
  node->mask = saved.mask;
  node->kept = q.kept;
  node->norms = norms;
  if (norms) {
    if (plan.records_tables) torch_internals::set_output(sum_node(plan), saved.sum);
    torch_internals::set_inputs(*node, {saved.sum, weights.norm_weight, weights.norm_bias});
    node->x = save_for_backward(saved.sum);
    node->weight = save_for_backward(weights.norm_weight);
    node->bias = save_for_backward(weights.norm_bias);
    node->mean = saved.mean;
    node->rstd = saved.rstd;
  } else {
    torch_internals::set_input(*node, sum_node(plan), out);
  }
  torch_internals::set_output(std::move(node), out);
}

}  // namespace posenc::functional
