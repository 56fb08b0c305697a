#include "functional/embed/backward.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/embedding_backward.h>
#include <ATen/ops/empty.h>

#include <cstring>

#include "functional/dispatch.h"
#include "functional/dropout/generator.h"
#include "functional/row_gradient.h"
#include "kernels/group_by_id.h"
#include "torch_internals/backward_node.h"
#include "torch_internals/grad_access.h"
#include "torch_internals/profiled.h"
#include "torch_internals/shortcut.h"

namespace posenc::functional {
namespace {

namespace kernel = kernels::embed;

bool is_readable(const at::Tensor& ids) {
  return torch_internals::is_plain(ids) && ids.is_contiguous() &&
         (ids.scalar_type() == at::kLong || ids.scalar_type() == at::kInt);
}

struct EmbedBackward : torch_internals::BackwardNode {
  EmbedBackward() : BackwardNode("EmbedBackward") {}
  torch_internals::Gradients backward(const at::Tensor& grad) override;
  void release() override {
    ids.reset_data();
    mask.reset();
  }

  at::Tensor saved_ids(const at::Tensor& grad) const;
  at::Tensor composed(const at::Tensor& grad, const at::Tensor& saved) const;
  at::Tensor sparse(const at::Tensor& grad, const kernel::TokenGroups& groups) const;
  bool accumulate(const at::Tensor& grad, const kernel::TokenGroups& groups);

  torch_internals::SavedVariable ids;
  at::Tensor mask;
  RowGradient table;
  int64_t tokens = 0, padding = -1;
  bool is_sparse = false;
};

// Returns the saved ids, checking that their number and the gradient's size still match the
// forward: set_data() can replace a tensor's memory, sizes and dtype without a new version, and a
// node can be called without the engine.
at::Tensor EmbedBackward::saved_ids(const at::Tensor& grad) const {
  const at::Tensor saved = ids.unpack();
  TORCH_CHECK(saved.numel() == tokens && grad.numel() == tokens * table.dim,
              "[embed] backward needs the forward's ", tokens, " ids and a gradient of ", table.dim,
              " channels for each. Got ids ", saved.sizes(), " and a gradient ", grad.sizes());
  return saved;
}

// The gradient that autograd computes for embed_composed(); can itself be differentiated.
at::Tensor EmbedBackward::composed(const at::Tensor& grad, const at::Tensor& saved) const {
  const bool once = rounds_once(table.type);
  at::Tensor g = once ? grad.to(at::kFloat) : grad;
  if (mask.defined()) g = g * noise_of(mask, table.kept.factor, g.contiguous());
  if (table.scale != 1.0) g = g * table.scale;
  return at::embedding_backward(once ? g.to(table.dtype) : g, saved, table.rows, padding,
                                /*scale_grad_by_freq=*/false, is_sparse);
}

at::Tensor EmbedBackward::sparse(const at::Tensor& grad, const kernel::TokenGroups& groups) const {
  const auto count = static_cast<int64_t>(groups.ids.size());
  const at::TensorOptions options(table.dtype);
  const at::Tensor indices = at::empty({1, count}, at::TensorOptions(at::kLong));
  const at::Tensor values = at::empty({count, table.dim}, options);
  if (count > 0) {
    std::memcpy(indices.data_ptr(), groups.ids.data(), sizeof(int64_t) * groups.ids.size());
    kernel::SumRowsRequest s = table.request(grad, groups);
    s.row = nullptr;
    s.out = values.data_ptr();
    table.sum(s, groups, /*scratch=*/false);
  }
  return at::_sparse_coo_tensor_unsafe(indices, values, {table.rows, table.dim},
                                       options.layout(at::kSparse),
                                       /*is_coalesced=*/true);
}

bool EmbedBackward::accumulate(const at::Tensor& grad, const kernel::TokenGroups& groups) {
  const int64_t sizes[] = {table.rows, table.dim};
  const torch_internals::GradAccess access(*this, sizes, table.dtype);
  if (!is_sparse) return table.add_to(access, grad, groups);
  if (!access || access.grad().defined()) return false;
  access.grad() = sparse(grad, groups);  // AccumulateGrad would drop is_coalesced
  return true;
}

torch_internals::Gradients EmbedBackward::backward(const at::Tensor& incoming) {
  const torch_internals::Profiled profiled("posenc::embed_backward", incoming);
  const at::Tensor saved = saved_ids(incoming);
  torch_internals::check_not_released(table.kept.bits == nullptr || mask.defined());
  if (at::GradMode::is_enabled() || !torch_internals::dispatches_plainly() ||
      !torch_internals::is_plain(incoming) || incoming.scalar_type() != table.dtype ||
      !is_readable(saved))
    return {composed(incoming, saved)};
  const at::Tensor grad = incoming.contiguous();
  const kernel::TokenGroups groups = kernel::group_by_id(
      {saved.const_data_ptr(), saved.scalar_type() == at::kLong}, tokens, table.rows, padding);
  if (accumulate(grad, groups)) return {at::Tensor()};
  return {is_sparse ? sparse(grad, groups) : table.dense(grad, groups)};
}

}  // namespace

void record(const at::Tensor& out, const at::Tensor& ids, const at::Tensor& weight,
            const EmbedPlan& plan, const at::Tensor& mask, bool sparse) {
  auto node = torch_internals::make_node<EmbedBackward>();
  node->ids = torch_internals::save_for_backward(ids);
  node->mask = mask;
  node->table.type = plan.type;
  node->table.dtype = weight.scalar_type();
  node->table.rows = weight.size(0);
  node->table.dim = plan.gather.dim;
  node->table.scale = plan.gather.scale;
  node->table.kept = plan.gather.kept;
  node->tokens = ids.numel();
  node->padding = plan.padding;
  node->is_sparse = sparse;
  torch_internals::set_history(out, std::move(node), weight);
}

}  // namespace posenc::functional
