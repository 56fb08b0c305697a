#include "posenc/functional/embed.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/grad_mode.h>

#include "functional/embed/composed.h"
#include "functional/embed/fused.h"
#include "functional/embed/plan.h"
#include "posenc/core/check.h"

namespace posenc::functional {
namespace {

// The bytes from a tensor's first to its last element.
struct Extent {
  explicit Extent(const at::Tensor& t) {
    if (!t.defined() || t.numel() == 0) return;
    int64_t elements = 1;
    for (int64_t axis = 0; axis < t.dim(); ++axis) elements += (t.size(axis) - 1) * t.stride(axis);
    begin = reinterpret_cast<uintptr_t>(t.const_data_ptr());
    end = begin + static_cast<uintptr_t>(elements) * t.element_size();
  }
  uintptr_t begin = 0, end = 0;
};

void check_apart(const at::Tensor& out, const at::Tensor& other, const char* name) {
  const Extent a(out), b(other);
  TORCH_CHECK_VALUE(a.end <= b.begin || b.end <= a.begin, "[embed] out must not share memory with ",
                    name, ". Got one that does");
}

void check_output(const at::Tensor& out, const at::Tensor& ids, const at::Tensor& weight,
                  const at::Tensor& table) {
  TORCH_CHECK_VALUE(out.defined(), "[embed] out must be a tensor. Got an undefined one");
  TORCH_CHECK_VALUE(weight.dim() == 2,
                    "[TokenEmbedding] weight must be (vocab_size, d_model). Got ", weight.sizes());
  at::DimVector sizes(ids.sizes());
  sizes.push_back(weight.size(1));
  TORCH_CHECK_VALUE(out.sizes() == sizes, "[embed] out must be (..., D) = ", at::IntArrayRef(sizes),
                    ". Got ", out.sizes());
  TORCH_CHECK_TYPE(out.scalar_type() == weight.scalar_type(), "[embed] out must have the type of ",
                   "weight, ", weight.scalar_type(), ". Got ", out.scalar_type());
  TORCH_CHECK_VALUE(out.device() == weight.device(), "[embed] out must be on the weight's device ",
                    weight.device(), ". Got ", out.device());
  TORCH_CHECK_VALUE(
      out.layout() == at::kStrided && at::has_internal_overlap(out) != at::MemOverlap::Yes,
      "[embed] out must be strided, each element in a place of its own. Got strides ",
      out.layout() == at::kStrided ? out.strides() : at::IntArrayRef());
  const bool recorded = (out.requires_grad() || weight.requires_grad() || table.requires_grad()) &&
                        at::GradMode::is_enabled();
  TORCH_CHECK_VALUE(!recorded && !(out.requires_grad() && out.is_leaf()),
                    "[embed] embed_out() records no gradient: no tensor may require one, or call "
                    "it under torch::NoGradGuard. Got one that does");
  check_apart(out, weight, "weight");
  check_apart(out, table, "table");
  check_apart(out, ids, "ids");
}

}  // namespace

at::Tensor embed(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
                 const EmbedFuncOptions& options) {
  check_dropout("embed", options.dropout());
  TORCH_CHECK_VALUE(table.defined(), "[embed] there must be a table of positions. Got none");
  const at::Tensor fused = embed_fused(ids, weight, table, options);
  return fused.defined() ? fused : embed_composed(ids, weight, table, options);
}

const at::Tensor& embed_out(const at::Tensor& out, const at::Tensor& ids, const at::Tensor& weight,
                            const at::Tensor& table, const EmbedFuncOptions& options) {
  check_dropout("embed", options.dropout());
  check_output(out, ids, weight, table);
  const bool direct = is_plain(out) && out.is_contiguous();
  const at::Tensor result = direct ? embed_fused(ids, weight, table, options, out) : at::Tensor();
  if (!result.defined()) out.copy_(embed(ids, weight, table, options));
  return out;
}

}  // namespace posenc::functional
