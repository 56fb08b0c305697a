#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/embedding_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>
#include <c10/util/SmallVector.h>

#include <numeric>

#include "core/torch_internals/backward_node.h"
#include "core/torch_internals/profiled.h"
#include "core/torch_internals/shortcut.h"
#include "positions/functional/dispatch.h"
#include "positions/functional/dropout/generator.h"
#include "positions/functional/embed/fused.h"
#include "positions/functional/embed/row_gradient.h"

// The sum of rows and its dropout are one node. With a norm there are two: the norm and the dropout
// are one, whose input is the output of the other, the sum of rows. Each node saves what ATen's
// operations would save, and the gradient of the norm can itself be differentiated, because the sum
// of rows that it saves is part of the graph.
namespace posenc::functional {
namespace {

namespace kernel = kernels::embed;
using torch_internals::check_not_released;
using torch_internals::Gradients;
using torch_internals::save_for_backward;
using torch_internals::SavedVariable;

// Whether a kernel may read the gradient, and autograd does not record the operation.
bool is_plain_gradient(const at::Tensor& grad, at::ScalarType dtype) {
  return !at::GradMode::is_enabled() && torch_internals::dispatches_plainly() &&
         torch_internals::is_plain(grad) && grad.scalar_type() == dtype;
}

bool is_readable(const at::Tensor& ids) {
  return !ids.defined() || (torch_internals::is_plain(ids) && ids.is_contiguous() &&
                            (ids.scalar_type() == at::kLong || ids.scalar_type() == at::kInt));
}

// What both nodes know.
struct EmbedNode : torch_internals::BackwardNode {
  EmbedNode(const char* node, const char* operation, const EmbedPlan& plan, const EmbedNames& names)
      : BackwardNode(node),
        profiled_as(operation),
        module(names.module),
        tokens(plan.request.tokens),
        dim(plan.request.dim),
        type(plan.type),
        dtype(plan.tokens.weight->scalar_type()) {}

  // Only the engine compares the gradient's shape with the result's.
  void check(const at::Tensor& grad) const {
    TORCH_CHECK(grad.numel() == tokens * dim, "[", module, "] backward needs a gradient of ", dim,
                " channels for each of ", tokens, " tokens. Got ", grad.sizes());
    check_not_released(kept.bits == nullptr || mask.defined());
  }
  at::Tensor noise(const at::Tensor& grad) const {
    return noise_of(mask, kept.factor, grad.contiguous());
  }
  // The gradient before the dropout.
  at::Tensor before_dropout(const at::Tensor& grad) const {
    if (kept.bits == nullptr) return grad;
    if (!is_plain_gradient(grad, dtype)) return grad * noise(grad);
    const at::Tensor from = grad.contiguous(), out = at::empty_like(from);
    run_dropout(type, {from.const_data_ptr(), kept, out.data_ptr()}, from.numel());
    return out;
  }

  const char *profiled_as, *module;
  int64_t tokens, dim;
  kernel::Type type;
  at::ScalarType dtype;
  at::Tensor mask;
  kernel::DropoutMask kept;
};

struct EmbedNormBackward : EmbedNode {
  EmbedNormBackward(const EmbedPlan& plan, const EmbedNames& names)
      : EmbedNode(names.norm_node, names.norm_backward, plan, names) {}
  Gradients backward(const at::Tensor& incoming) override;
  void release() override {
    for (SavedVariable* saved : {&x, &weight, &bias}) saved->reset_data();
    for (at::Tensor* saved : {&mask, &mean, &rstd}) saved->reset();
  }

  SavedVariable x, weight, bias;  // x: the sum of rows
  at::Tensor mean, rstd;
};

Gradients EmbedNormBackward::backward(const at::Tensor& incoming) {
  const torch_internals::Profiled profiled(profiled_as, incoming);
  check(incoming);
  const at::Tensor grad = before_dropout(incoming);
  const at::Tensor sum = x.unpack();  // throws if the tensors have been released
  auto [of_sum, of_weight, of_bias] = at::native_layer_norm_backward(
      grad, sum, {dim}, mean, rstd, weight.unpack(), bias.unpack(), {wants(0), wants(1), wants(2)});
  return {std::move(of_sum), std::move(of_weight), std::move(of_bias)};
}

// A table that requires a gradient, and which of its rows were read.
struct ReadRows {
  kernel::TokenGroups groups(const at::Tensor& saved) const;
  at::Tensor index(const at::Tensor& saved, const at::Tensor& grad) const;
  at::Tensor of_all(const at::Tensor& grad) const;

  RowsRead rows = RowsRead::Given;
  SavedVariable ids;
  int64_t count = 0;  // number of rows that are read, before they are repeated
  int64_t offset = 0, padding = -1;
  bool repeats = false;
  RowGradient table;
};

kernel::TokenGroups ReadRows::groups(const at::Tensor& saved) const {
  if (rows == RowsRead::Given)
    return kernel::group_by_id({saved.const_data_ptr(), saved.scalar_type() == at::kLong}, count,
                               table.rows, padding);
  kernel::TokenGroups groups;
  groups.tokens.resize(static_cast<size_t>(count));
  std::iota(groups.tokens.begin(), groups.tokens.end(), 0);
  if (rows == RowsRead::First && padding != 0) {
    groups.ids = {0};
    groups.first = {0};
  } else if (rows == RowsRead::First) {
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
at::Tensor ReadRows::index(const at::Tensor& saved, const at::Tensor& grad) const {
  const at::TensorOptions options(at::kLong);
  const at::Tensor flat = rows == RowsRead::Given   ? saved
                          : rows == RowsRead::First ? at::zeros({count}, options)
                                                    : at::arange(offset, offset + count, options);
  return flat.reshape(grad.sizes().slice(0, grad.dim() - 1));
}

at::Tensor ReadRows::of_all(const at::Tensor& grad) const {
  return repeats ? grad.reshape({-1, count, table.dim}).sum(0) : grad;
}

struct EmbedBackward : EmbedNode {
  EmbedBackward(const EmbedPlan& plan, const EmbedNames& names)
      : EmbedNode(names.node, names.backward, plan, names), is_sparse(plan.sparse) {}
  Gradients backward(const at::Tensor& incoming) override;
  void release() override {
    released = true;
    mask.reset();
    for (ReadRows& read : tables) read.ids.reset_data();
  }

  at::Tensor saved_ids(const ReadRows& read) const;
  at::Tensor composed(const ReadRows& read, const at::Tensor& grad, const at::Tensor& saved) const;
  at::Tensor summed(const ReadRows& read, const at::Tensor& grad, const at::Tensor& saved);

  c10::SmallVector<ReadRows, 1> tables;
  bool is_sparse, released = false;
};

// The saved ids, or an undefined tensor if there are none. set_data() can replace a tensor's
// memory, sizes and dtype without a new version.
at::Tensor EmbedBackward::saved_ids(const ReadRows& read) const {
  if (read.rows != RowsRead::Given) return {};
  at::Tensor saved = read.ids.unpack();
  TORCH_CHECK(saved.numel() == read.count, "[", module, "] backward needs the forward's ",
              read.count, " ids. Got ids ", saved.sizes());
  return saved;
}

// The gradient that autograd computes for the composition; can itself be differentiated.
at::Tensor EmbedBackward::composed(const ReadRows& read, const at::Tensor& grad,
                                   const at::Tensor& saved) const {
  at::Tensor rows = rounds_once(type) ? grad.to(at::kFloat) : grad;
  if (read.table.kept.bits != nullptr) rows = rows * noise(rows);
  if (read.table.scale != 1.0) rows = rows * read.table.scale;
  rows = read.of_all(rows.to(dtype));
  return at::embedding_backward(rows, read.index(saved, rows), read.table.rows, read.padding,
                                /*scale_grad_by_freq=*/false, is_sparse);
}

// The kernel's gradient of a table; undefined if it was added to the table's .grad.
at::Tensor EmbedBackward::summed(const ReadRows& read, const at::Tensor& grad,
                                 const at::Tensor& saved) {
  const RowGradient& table = read.table;
  const at::Tensor rows = read.of_all(grad).contiguous();
  const kernel::TokenGroups groups = read.groups(saved);
  if (&read == &tables[0]) {
    const int64_t sizes[] = {table.rows, dim};
    const torch_internals::GradAccess access(*this, sizes, dtype);
    if (!is_sparse && table.add_to(access, rows, groups)) return {};
    if (is_sparse && access && !access.grad().defined()) {
      access.grad() = table.sparse(rows, groups);  // AccumulateGrad would drop is_coalesced
      return {};
    }
  }
  return is_sparse ? table.sparse(rows, groups) : table.dense(rows, groups);
}

Gradients EmbedBackward::backward(const at::Tensor& incoming) {
  const torch_internals::Profiled profiled(profiled_as, incoming);
  check_not_released(!released);
  check(incoming);
  // The sum of a single table's rows includes the dropout.
  const bool drops = kept.bits != nullptr && tables[0].table.kept.bits == nullptr;
  const at::Tensor grad = drops ? before_dropout(incoming) : incoming;
  const bool plain = is_plain_gradient(grad, dtype);
  Gradients results(tables.size());
  for (size_t i = 0; i < tables.size(); ++i) {
    if (!wants(i)) continue;
    const at::Tensor saved = saved_ids(tables[i]);
    results[i] = plain && is_readable(saved) ? summed(tables[i], grad, saved)
                                             : composed(tables[i], grad, saved);
  }
  return results;
}

torch_internals::NodePointer<EmbedBackward> sum_node(const EmbedPlan& plan,
                                                     const EmbedNames& names) {
  const kernel::EmbedRequest& q = plan.request;
  auto node = torch_internals::make_node<EmbedBackward>(plan, names);
  c10::SmallVector<at::Tensor, 1> inputs;
  const auto add = [&](const EmbedTable& from, int64_t count, int64_t offset, double scale) {
    if (!from.records) return;
    ReadRows& read = node->tables.emplace_back();
    read.rows = from.rows;
    if (from.ids != nullptr) read.ids = save_for_backward(*from.ids);
    read.count = count;
    read.offset = offset;
    read.padding = from.padding;
    read.repeats = from.repeats;
    read.table.type = plan.type;
    read.table.dtype = node->dtype;
    read.table.rows = from.weight->sizes()[0];
    read.table.dim = q.dim;
    read.table.scale = scale;
    inputs.push_back(*from.weight);
  };
  add(plan.tokens, q.tokens, 0, q.scale);
  for (int k = 0; k < q.tables; ++k) {
    const bool first = plan.added[k].rows == RowsRead::First;
    add(plan.added[k], first ? q.tokens : q.added[k].count, q.added[k].offset, 1.0);
  }
  torch_internals::set_inputs(*node, inputs);
  return node;
}

}  // namespace

void record(const at::Tensor& out, const EmbedPlan& plan, const EmbedNames& names,
            const EmbedSaved& saved) {
  const kernel::EmbedRequest& q = plan.request;
  if (!plan.records_norm) {
    auto node = sum_node(plan, names);
    node->mask = saved.mask;
    node->kept = q.kept;
    if (node->tables.size() == 1 && !node->tables[0].repeats) node->tables[0].table.kept = q.kept;
    return torch_internals::set_output(std::move(node), out);
  }
  if (plan.records_tables) torch_internals::set_output(sum_node(plan, names), saved.sum);
  auto node = torch_internals::make_node<EmbedNormBackward>(plan, names);
  node->mask = saved.mask;
  node->kept = q.kept;
  torch_internals::set_inputs(*node, {saved.sum, *plan.norm_weight, *plan.norm_bias});
  node->x = save_for_backward(saved.sum);
  node->weight = save_for_backward(*plan.norm_weight);
  node->bias = save_for_backward(*plan.norm_bias);
  node->mean = saved.mean;
  node->rstd = saved.rstd;
  torch_internals::set_output(std::move(node), out);
}

}  // namespace posenc::functional
