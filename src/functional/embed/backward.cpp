#include "functional/embed/backward.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/embedding_backward.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <vector>

#include "functional/dispatch.h"
#include "functional/dropout/generator.h"
#include "kernels/dispatch.h"
#include "kernels/group_by_id.h"
#include "torch_internals/backward_node.h"
#include "torch_internals/fresh_memory.h"
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
  kernel::SumRowsRequest request(const at::Tensor& grad, const kernel::TokenGroups& groups) const;
  void sum(const kernel::SumRowsRequest& request, const kernel::TokenGroups& groups,
           bool scratch) const;
  at::Tensor dense(const at::Tensor& grad, const kernel::TokenGroups& groups) const;
  at::Tensor sparse(const at::Tensor& grad, const kernel::TokenGroups& groups) const;
  bool accumulate(const at::Tensor& grad, const kernel::TokenGroups& groups);

  torch_internals::SavedVariable ids;
  at::Tensor mask;
  kernel::Type type = kernel::Type::Float32;
  kernel::DropoutMask kept;
  double scale = 1.0;
  int64_t tokens = 0, rows = 0, dim = 0, padding = -1;
  at::ScalarType dtype = at::kFloat;
  bool is_sparse = false;
};

// Returns the saved ids, checking that their number and the gradient's size still match the
// forward: set_data() can replace a tensor's memory, sizes and dtype without a new version, and a
// node can be called without the engine.
at::Tensor EmbedBackward::saved_ids(const at::Tensor& grad) const {
  const at::Tensor saved = ids.unpack();
  TORCH_CHECK(saved.numel() == tokens && grad.numel() == tokens * dim,
              "[embed] backward needs the forward's ", tokens, " ids and a gradient of ", dim,
              " channels for each. Got ids ", saved.sizes(), " and a gradient ", grad.sizes());
  return saved;
}

// The gradient that autograd computes for embed_composed(); can itself be differentiated.
at::Tensor EmbedBackward::composed(const at::Tensor& grad, const at::Tensor& saved) const {
  const bool once = rounds_once(type);
  at::Tensor g = once ? grad.to(at::kFloat) : grad;
  if (mask.defined()) g = g * noise_of(mask, kept.factor, g.contiguous());
  if (scale != 1.0) g = g * scale;
  return at::embedding_backward(once ? g.to(dtype) : g, saved, rows, padding,
                                /*scale_grad_by_freq=*/false, is_sparse);
}

kernel::SumRowsRequest EmbedBackward::request(const at::Tensor& grad,
                                              const kernel::TokenGroups& groups) const {
  kernel::SumRowsRequest s;
  s.grad = grad.const_data_ptr();
  s.dim = dim;
  s.scale = scale;
  s.kept = kept;
  s.token = groups.tokens.data();
  s.first = groups.first.data();
  s.row = groups.ids.data();
  s.out_stride = dim;
  return s;
}

// Each row is summed by one thread, so the result does not depend on the number of threads.
void EmbedBackward::sum(const kernel::SumRowsRequest& request, const kernel::TokenGroups& groups,
                        bool scratch) const {
  const auto sum_rows = kernels::chosen().sum_rows.sum_rows[static_cast<int>(type)];
  const auto summed = static_cast<int64_t>(groups.tokens.size());
  const int64_t parts = worth_threads(summed * dim) ? at::get_num_threads() : 1;
  const auto part = [&](int64_t begin, int64_t end) {
    kernel::SumRowsRequest own = request;
    std::vector<char> row(scratch ? static_cast<size_t>(dim * kernel::element_size(type)) : 0);
    own.scratch = scratch ? row.data() : nullptr;
    sum_rows(own, kernel::first_group(groups, begin, parts),
             kernel::first_group(groups, end, parts));
  };
  parts > 1 ? at::parallel_for(0, parts, 1, part) : part(0, 1);
}

at::Tensor EmbedBackward::dense(const at::Tensor& grad, const kernel::TokenGroups& groups) const {
  at::Tensor out = torch_internals::lazy_zeros(rows, dim, dtype);
  kernel::SumRowsRequest s = request(grad, groups);
  s.out = out.data_ptr();
  sum(s, groups, /*scratch=*/false);
  return out;
}

at::Tensor EmbedBackward::sparse(const at::Tensor& grad, const kernel::TokenGroups& groups) const {
  const auto count = static_cast<int64_t>(groups.ids.size());
  const at::TensorOptions options(dtype);
  const at::Tensor indices = at::empty({1, count}, at::TensorOptions(at::kLong));
  const at::Tensor values = at::empty({count, dim}, options);
  if (count > 0) {
    std::memcpy(indices.data_ptr(), groups.ids.data(), sizeof(int64_t) * groups.ids.size());
    kernel::SumRowsRequest s = request(grad, groups);
    s.row = nullptr;
    s.out = values.data_ptr();
    sum(s, groups, /*scratch=*/false);
  }
  return at::_sparse_coo_tensor_unsafe(indices, values, {rows, dim}, options.layout(at::kSparse),
                                       /*is_coalesced=*/true);
}

// Adds to the weight's .grad directly. AccumulateGrad would need a V x D tensor, mostly zeros, to
// add. As there, each row is summed first and then added; the only difference is that a -0.0 in a
// row that no token uses stays -0.0.
bool EmbedBackward::accumulate(const at::Tensor& grad, const kernel::TokenGroups& groups) {
  const int64_t sizes[] = {rows, dim};
  const torch_internals::GradAccess access(*this, sizes, dtype);
  if (!access) return false;
  at::Tensor& existing = access.grad();
  if (!existing.defined()) {
    if (is_sparse) existing = sparse(grad, groups);  // AccumulateGrad would drop is_coalesced
    return is_sparse;
  }
  if (is_sparse || !access.may_add_in_place(grad)) return false;
  torch_internals::note_write(existing);
  kernel::SumRowsRequest s = request(grad, groups);
  s.out = existing.data_ptr();
  sum(s, groups, /*scratch=*/true);
  return true;
}

torch_internals::Gradients EmbedBackward::backward(const at::Tensor& incoming) {
  const torch_internals::Profiled profiled("posenc::embed_backward", incoming);
  const at::Tensor saved = saved_ids(incoming);
  torch_internals::check_not_released(kept.bits == nullptr || mask.defined());
  if (at::GradMode::is_enabled() || !torch_internals::dispatches_plainly() ||
      !torch_internals::is_plain(incoming) || incoming.scalar_type() != dtype ||
      !is_readable(saved))
    return {composed(incoming, saved)};
  const at::Tensor grad = incoming.contiguous();
  const kernel::TokenGroups groups = kernel::group_by_id(
      {saved.const_data_ptr(), saved.scalar_type() == at::kLong}, tokens, rows, padding);
  if (accumulate(grad, groups)) return {at::Tensor()};
  return {is_sparse ? sparse(grad, groups) : dense(grad, groups)};
}

}  // namespace

void record(const at::Tensor& out, const at::Tensor& ids, const at::Tensor& weight,
            const EmbedPlan& plan, const at::Tensor& mask, bool sparse) {
  auto node = c10::make_intrusive<EmbedBackward>();
  node->ids = torch_internals::save_for_backward(ids);
  node->mask = mask;
  node->type = plan.type;
  node->kept = plan.gather.kept;
  node->scale = plan.gather.scale;
  node->tokens = ids.numel();
  node->rows = weight.size(0);
  node->dim = plan.gather.dim;
  node->padding = plan.padding;
  node->dtype = weight.scalar_type();
  node->is_sparse = sparse;
  torch_internals::set_history(out, std::move(node), weight);
}

}  // namespace posenc::functional
