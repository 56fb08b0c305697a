#include "positions/functional/rotary/fused.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "base/platform/memory.h"
#include "base/platform/processor.h"
#include "core/torch_internals/fresh_memory.h"
#include "core/torch_internals/profiled.h"
#include "core/torch_internals/shortcut.h"
#include "kernels/dispatch.h"
#include "positions/functional/dispatch.h"
#include "positions/functional/rotary/compose.h"

namespace posenc::functional {
namespace {

namespace rotary_kernel = kernels::rotary;

constexpr int64_t kRotationGrain = 32768;

void write_to(const at::Tensor& out, const RotaryFuncOptions& func_options,
              rotary_kernel::Heads& h) {
  const HeadsShape shape(out, head_axis_of(func_options));
  h.out = out.data_ptr();
  h.out_batch = shape.batch_stride;
  h.out_head = shape.head_stride;
  h.out_row = shape.row_stride;
}

// A row of the result has one owner, so the number of threads changes no bit.
void run(RotaryPlan& plan, int64_t elements, int64_t rows) {
  rotary_kernel::Rotation& r = plan.rotation;
  r.stream = elements * kernels::embed::element_size(plan.type) >= platform::caches().stream_bytes;
  const auto rotate = kernels::chosen().rotary.rotate[static_cast<int>(plan.type)];
  const auto part = [&](int64_t begin, int64_t end) {
    rotate(r, begin, end,
           platform::scratch(platform::Scratch::Rotation, rotary_kernel::scratch_floats(r.pairs)));
  };
  if (!worth_threads(elements)) return part(0, rows);
  at::parallel_for(0, rows, std::max<int64_t>(1, kRotationGrain * rows / elements), part);
}

// Writes to those of the two results that are defined, in the plan's order.
void run_into(RotaryPlan& plan, const at::Tensor& first, const at::Tensor& second,
              const RotaryFuncOptions& func_options) {
  int64_t elements = 0, count = 0, rows = 0;
  for (const at::Tensor* out : {&first, &second}) {
    if (!out->defined()) continue;
    rotary_kernel::Heads& h = plan.rotation.heads[count++];
    write_to(*out, func_options, h);
    elements += out->numel();
    rows = out->numel() / (h.count * plan.rotation.width);
  }
  run(plan, elements, rows);
}

at::Tensor output_like(const at::Tensor& x) {
  return x.defined() ? torch_internals::fresh_output(x.sizes(), x.scalar_type()) : at::Tensor();
}

}  // namespace

QueryKey rotary_fused(RotaryPlan& plan, const at::Tensor& q, const at::Tensor& k,
                      const RotaryOptions& options, const RotaryFuncOptions& func_options) {
  const torch_internals::Profiled profiled("posenc::rotary", q, k, plan.cos, plan.sin);
  QueryKey result(output_like(q), output_like(k));
  const auto& [q_out, k_out] = result;
  run_into(plan, q_out, k_out, func_options);
  record(plan, result, q, k, options, func_options);
  return result;
}

void rotary_fused_out(RotaryPlan& plan, const at::Tensor& q_out, const at::Tensor& k_out,
                      const at::Tensor& q, const at::Tensor& k,
                      const RotaryFuncOptions& func_options) {
  const torch_internals::Profiled profiled("posenc::rotary_out", q, k, plan.cos, plan.sin);
  if (q_out.defined()) torch_internals::note_write(q_out);
  if (k_out.defined()) torch_internals::note_write(k_out);
  run_into(plan, q_out, k_out, func_options);
}

at::Tensor rotary_fused_backward(RotaryPlan& plan, const at::Tensor& grad,
                                 const RotaryFuncOptions& func_options) {
  at::Tensor out = output_like(grad);
  run_into(plan, out, {}, func_options);
  return out;
}

}  // namespace posenc::functional
