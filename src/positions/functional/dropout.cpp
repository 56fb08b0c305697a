#include "posenc/positions/functional/dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>

#include "core/torch_internals/backward_node.h"
#include "core/torch_internals/profiled.h"
#include "core/torch_internals/shortcut.h"
#include "kernels/dispatch.h"
#include "kernels/embed.h"
#include "positions/functional/dispatch.h"
#include "positions/functional/dropout/generator.h"

namespace posenc::functional {
namespace {

namespace kernel = kernels::embed;
using torch_internals::dispatches_plainly;
using torch_internals::is_plain;

// Processes elements in memory order, whatever the order of the axes.
struct DropBackward : torch_internals::BackwardNode {
  DropBackward() : BackwardNode("DropoutBackward") {}
  torch_internals::Gradients backward(const at::Tensor& incoming) override;
  void release() override { mask.reset(); }

  at::Tensor mask;
  kernel::DropoutMask kept;
  kernel::Type type;
  at::ScalarType dtype;
  std::vector<int64_t> sizes, strides;
};

kernel::DropoutRequest request(const at::Tensor& x, const kernel::DropoutMask& kept,
                               const at::Tensor& out) {
  return {x.const_data_ptr(), kept, out.data_ptr()};
}

torch_internals::Gradients DropBackward::backward(const at::Tensor& incoming) {
  const torch_internals::Profiled profiled("posenc::dropout_backward", incoming);
  torch_internals::check_not_released(mask.defined());
  const at::TensorOptions options(dtype);
  if (at::GradMode::is_enabled() || !dispatches_plainly() || !is_plain(incoming) ||
      incoming.scalar_type() != dtype ||
      incoming.sizes() != at::IntArrayRef(sizes)) {  // double backward, or ATen's error
    return {incoming * noise_of(mask, kept.factor, at::empty_strided(sizes, strides, options))};
  }
  at::Tensor grad = incoming;
  if (grad.strides() != at::IntArrayRef(strides))
    grad = at::empty_strided(sizes, strides, options).copy_(grad);
  const at::Tensor out = at::empty_strided(sizes, strides, options);
  run_dropout(type, request(grad, kept, out), grad.numel());
  return {out};
}

// Whether drop() gives the same bits as at::dropout. Draws nothing.
bool is_fusable(const at::Tensor& x, double p, kernel::Type& type) {
  return p > 0.0 && p < 1.0 && x.defined() && dispatches_plainly() && is_plain(x) &&
         find_type(x.scalar_type(), /*exact=*/false, type) && x.numel() != 0 &&
         x.is_non_overlapping_and_dense() &&
         can_draw_dropout_bits(x.scalar_type(), x.is_contiguous());
}

at::Tensor drop(const at::Tensor& x, double p, kernel::Type type) {
  const torch_internals::Profiled profiled("posenc::dropout", x);
  const int64_t elements = x.numel();
  const at::Tensor mask = at::empty({mask_bytes(elements)}, at::kByte);
  DropoutBits bits(1.0 - p, x.scalar_type(), mask.data_ptr<uint8_t>());
  const at::Tensor out = at::empty_strided(x.sizes(), x.strides(), x.options());
  const kernel::DropoutMask kept{mask.const_data_ptr<uint8_t>(),
                                 kept_factor(1.0 - p, x.scalar_type())};
  const auto work = request(x, kept, out);
  const auto kernel = kernels::chosen().dropout.drop[static_cast<int>(type)];
  if (worth_threads(elements)) {
    draw_while_used(bits, elements, kDropoutChunk,
                    [&](int64_t begin, int64_t end) { kernel(work, begin, end); });
  } else {
    bits.draw(elements);
    kernel(work, 0, elements);
  }
  if (!torch_internals::is_recorded(x)) return out;
  auto node = torch_internals::make_node<DropBackward>();
  node->mask = mask;
  node->kept = kept;
  node->type = type;
  node->dtype = x.scalar_type();
  node->sizes = x.sizes().vec();
  node->strides = x.strides().vec();
  torch_internals::set_history(out, std::move(node), x);
  return out;
}

}  // namespace

at::Tensor dropout(const at::Tensor& x, double p, bool training) {
  kernel::Type type;
  return training && is_fusable(x, p, type) ? drop(x, p, type) : at::dropout(x, p, training);
}

}  // namespace posenc::functional
