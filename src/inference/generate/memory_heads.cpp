#include "inference/generate/memory_heads.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "core/torch_internals/fresh_memory.h"

namespace posenc::inference {

MemoryHeads::MemoryHeads(const TransformerModel& model, const Memory& memory)
    : packing(memory.packing) {
  const HeadSizes& sizes = model.decoder.sizes;
  const int64_t rows = packing.rows, width = sizes.head_dim, both = 2 * sizes.kv_width();
  const auto layers = std::ssize(model.decoder.layers);
  head_stride = rows * width;
  values = sizes.kv_heads * head_stride;
  heads = torch_internals::fresh_output({2 * layers, sizes.kv_heads, rows, width}, at::kFloat);
  float* to = heads.data_ptr<float>();
  for (int64_t row = 0; row < rows; ++row) tokens.push_back(to + row * width);
  at::Tensor converted;
  const Stream read = memory_stream(model.decoder, memory.rows, converted);
  const at::Tensor projected = at::empty({rows, both}, at::kFloat);
  for (const DecoderLayer& layer : model.decoder.layers) {
    by_rows(rows, [&](int64_t begin, int64_t end) {
      float* const from = projected.data_ptr<float>() + begin * both;
      const Stream part = read.part(begin, end);
      project(part, layer.memory, part.x, from, both);
      for (int64_t row = begin; row < end; ++row)
        for (int64_t head = 0; head < 2 * sizes.kv_heads; ++head)
          std::copy_n(from + (row - begin) * both + head * width, width,
                      to + head * head_stride + row * width);
    });
    to += 2 * values;
  }
}

}  // namespace posenc::inference
