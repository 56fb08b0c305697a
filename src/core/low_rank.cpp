#include "core/low_rank.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/torch_internals/backward_node.h"
#include "core/torch_internals/shortcut.h"

namespace posenc {
namespace {

// By the weight's object, which Module::to() keeps where it sets other data.
struct AllAdditions {
  std::mutex mutex;
  std::unordered_map<const c10::TensorImpl*, std::vector<LowRankAddition>> by_weight;
  std::atomic<std::size_t> count = 0;  // which is zero where nothing is trained
};
AllAdditions& all_additions() {
  static auto* const all = new AllAdditions;  // which may be used until the process ends
  return *all;
}

at::Tensor flat(const at::Tensor& x) { return x.reshape({-1, x.size(-1)}); }

// y = x W^T + bias + sum of s (x A^T) B^T in some columns, as one node: gradients of x, A, B and
// the bias, for a weight that has none.
struct LowRankBackward : torch_internals::BackwardNode {
  LowRankBackward() : BackwardNode("PosencLowRankBackward") {}
  torch_internals::Gradients backward(const at::Tensor& incoming) override;
  void release() override {
    x.reset_data();
    weight.reset_data();
    parts.clear();
  }

  struct Part {
    int64_t begin, rows;
    double scale;
    torch_internals::SavedVariable a, b;
    at::Tensor narrow;  // x A^T
  };
  torch_internals::SavedVariable x, weight;
  std::vector<int64_t> sizes;
  std::vector<Part> parts;
  bool has_bias = false;
};

torch_internals::Gradients LowRankBackward::backward(const at::Tensor& incoming) {
  torch_internals::check_not_released(!parts.empty());
  const at::Tensor grad = flat(incoming), input = flat(x.unpack());
  torch_internals::Gradients result(2 + 2 * parts.size());
  at::Tensor of_x = wants(0) ? at::matmul(grad, weight.unpack()) : at::Tensor();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const at::Tensor a = part.a.unpack(), b = part.b.unpack();
    const at::Tensor own = grad.narrow(1, part.begin, part.rows);
    const at::Tensor narrow = at::matmul(own, b) * part.scale;  // (N, r)
    if (of_x.defined()) of_x.addmm_(narrow, a);
    if (wants(2 + 2 * i)) result[2 + 2 * i] = at::matmul(narrow.t(), input);
    if (!wants(3 + 2 * i)) continue;
    // With create_graph it has a gradient too.
    const at::Tensor of_b = at::GradMode::is_enabled() ? at::matmul(input, a.t()) : part.narrow;
    result[3 + 2 * i] = at::matmul(own.t(), of_b) * part.scale;
  }
  if (of_x.defined()) result[0] = of_x.view(sizes);
  if (has_bias && wants(1)) result[1] = grad.sum(0);
  return result;
}

at::Tensor fused(const at::Tensor& x, const at::Tensor& weight,
                 const std::optional<at::Tensor>& bias,
                 const std::vector<LowRankAddition>& additions) {
  at::Tensor y;
  auto node = torch_internals::make_node<LowRankBackward>();
  std::vector<at::Tensor> inputs = {x, bias.value_or(at::Tensor())};
  {
    const at::NoGradGuard no_grad;
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = weight.size(0);
    y = at::empty(sizes, x.options().requires_grad(false));  // not a view, for relu_() and the like
    const at::Tensor rows = flat(x);
    at::Tensor out = y.view({-1, y.size(-1)});
    if (bias) {
      at::addmm_out(out, *bias, rows, weight.t());
    } else {
      at::mm_out(out, rows, weight.t());
    }
    for (const LowRankAddition& one : additions) {
      const at::Tensor narrow = at::matmul(rows, one.a.t());
      out.narrow(1, one.begin, one.rows).addmm_(narrow, one.b.t(), 1.0, one.scale);
      node->parts.push_back({one.begin, one.rows, one.scale,
                             torch_internals::save_for_backward(one.a),
                             torch_internals::save_for_backward(one.b), narrow});
      inputs.push_back(one.a);
      inputs.push_back(one.b);
    }
  }
  node->x = torch_internals::save_for_backward(x);
  node->weight = torch_internals::save_for_backward(weight);
  node->sizes = x.sizes().vec();
  node->has_bias = bias.has_value();
  torch_internals::set_history(y, std::move(node), inputs);
  return y;
}

// The same by operations that are recorded one by one.
at::Tensor composed(const at::Tensor& x, const at::Tensor& weight,
                    const std::optional<at::Tensor>& bias,
                    const std::vector<LowRankAddition>& additions) {
  const at::Tensor plain = at::linear(x, weight);
  std::vector<at::Tensor> columns;
  int64_t next = 0;
  for (const LowRankAddition& one : additions) {
    if (one.begin > next) columns.push_back(plain.narrow(-1, next, one.begin - next));
    next = one.begin + one.rows;
    const at::Tensor own = plain.narrow(-1, one.begin, one.rows);
    const bool drops = one.dropout > 0.0 && one.is_training && one.is_training();
    const at::Tensor input = drops ? at::dropout(x, one.dropout, true) : x;
    const at::Tensor added = at::linear(at::linear(input, one.a), one.b) * one.scale;
    if (!one.magnitude.defined()) {
      columns.push_back(own + added);
      continue;
    }
    const at::Tensor rows = weight.narrow(0, one.begin, one.rows);
    const at::Tensor norm = at::linalg_vector_norm(  // a constant, as the paper has it
        at::addmm(rows.detach(), one.b.detach(), one.a.detach(), 1.0, one.scale), 2,
        at::IntArrayRef{1});
    const at::Tensor factor = one.magnitude / norm;
    columns.push_back(drops ? own + (factor - 1) * at::linear(input, rows) + factor * added
                            : factor * (own + added));
  }
  if (next < plain.size(-1)) columns.push_back(plain.narrow(-1, next, plain.size(-1) - next));
  const at::Tensor y = columns.size() == 1 ? columns.front() : at::cat(columns, -1);
  return bias ? y + *bias : y;
}

}  // namespace

void attach_additions(const at::Tensor& weight, std::vector<LowRankAddition> additions) {
  std::sort(additions.begin(), additions.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  AllAdditions& all = all_additions();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.by_weight.erase(weight.unsafeGetTensorImpl());
  if (!additions.empty()) all.by_weight.emplace(weight.unsafeGetTensorImpl(), std::move(additions));
  all.count = all.by_weight.size();
}

const std::vector<LowRankAddition>& additions_of(const at::Tensor& weight) {
  static const std::vector<LowRankAddition> none;
  AllAdditions& all = all_additions();
  if (all.count.load(std::memory_order_relaxed) == 0) return none;
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.by_weight.find(weight.unsafeGetTensorImpl());
  return found == all.by_weight.end() ? none : found->second;
}

at::Tensor linear_rows(const at::Tensor& x, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, int64_t begin, int64_t rows) {
  const bool is_whole = begin == 0 && (rows < 0 || rows == weight.size(0));
  const int64_t count = rows < 0 ? weight.size(0) - begin : rows;
  const auto part = [&](const at::Tensor& whole) {
    return is_whole ? whole : whole.narrow(0, begin, count);
  };
  const std::optional<at::Tensor> own_bias = bias ? std::optional(part(*bias)) : std::nullopt;
  std::vector<LowRankAddition> own;
  for (const LowRankAddition& one : additions_of(weight)) {
    const int64_t first = std::max(one.begin, begin);
    const int64_t last = std::min(one.begin + one.rows, begin + count);
    if (first >= last) continue;
    own.push_back(one);
    own.back().begin = first - begin;
    if (last - first == one.rows) continue;
    own.back().rows = last - first;
    own.back().b = one.b.narrow(0, first - one.begin, last - first);
    if (one.magnitude.defined())
      own.back().magnitude = one.magnitude.narrow(0, first - one.begin, last - first);
  }
  if (own.empty()) return at::linear(x, part(weight), own_bias);
  const bool is_plain = std::all_of(own.begin(), own.end(), [](const LowRankAddition& one) {
    const bool drops = one.dropout > 0.0 && one.is_training && one.is_training();
    return !drops && !one.magnitude.defined();
  });
  const bool is_fusable = is_plain && !weight.requires_grad() && at::GradMode::is_enabled() &&
                          torch_internals::dispatches_plainly();
  return is_fusable ? fused(x, part(weight), own_bias, own)
                    : composed(x, part(weight), own_bias, own);
}

}  // namespace posenc
