// The rows of a batch on their way through blocks.

#include "inference/layers/block_layers.h"

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <map>

#include "core/torch_internals/parts.h"
#include "inference/rows/layer_ends.h"

namespace posenc::inference {
namespace {

// A norm of it replaces x.
Stream in_place(const Stream& part) { return {part.x, part.x, part.rows, part.width, part.regime}; }

class BlockRun {
 public:
  BlockRun(const BlockLayers& layers, const BatchRows& batch, const LayerEnds& ends)
      : blocks_(layers.blocks),
        layers_(layers),
        stream_(batch.stream),
        used_rows_(batch.inputs.used_rows),
        ends_(ends) {
    bool takes_parts = used_rows_ == nullptr && batch.inputs.cache == nullptr;
    for (const Block& block : blocks_) {
      MixerRun* run = nullptr;
      if (block.mixers != nullptr) {
        std::unique_ptr<MixerRun>& of_kind = runs_[block.mixers];
        if (!of_kind) of_kind = block.mixers->begin(batch);
        run = of_kind.get();
        takes_parts &= block.mixers->takes_parts();
      }
      run_of_.push_back(run);
      if (mixes(block)) last_mixer_ = run_of_.size() - 1;
    }
    parts_ = takes_parts ? batch.packing.parts(kRowsPerThread * torch_internals::most_threads())
                         : std::vector{batch.packing.all()};
  }

  void run() {
    for (const SequenceRange& sequences : parts_) run(sequences);
  }

 private:
  // Of a part of the batch: few enough to stay in the cache, and enough to read weights for.
  static constexpr int64_t kRowsPerThread = 512;

  struct Place {
    std::size_t block, layer;
  };

  void run(const SequenceRange& sequences) {
    by_rows(sequences, [&](int64_t begin, int64_t end) {
      const Stream part = stream_.part(begin, end);
      enter(part, layers_.entry, layers_.entry_is_residual);
      advance({0, 0}, part, begin);
    });
    Place at = {0, 0};
    for (; at.block < blocks_.size(); at = after(at)) {
      const Block& block = blocks_[at.block];
      if (!mixes(block)) continue;
      MixerRun& mixer = *run_of_[at.block];
      mixer.mix(block.step, input_of(block, stream_), sequences);
      const bool is_last = uses_some(at.block);
      const auto go_on = [&](int64_t begin, int64_t end) {
        const Stream part = stream_.part(begin, end);
        if (is_last && block.beside) add_beside(*block.beside, part, input_of(block, part));
        mixer.write(block.step, part, begin, block.post, block.after);
        end_block(at, part, begin);
        advance(after(at), part, begin);
      };
      if (is_last) {
        for (const int64_t row : *used_rows_) go_on(row, row + 1);
      } else {
        by_rows(sequences, go_on);
      }
    }
  }

  Place after(Place at) const {
    return {at.block + 1, at.layer + (blocks_[at.block].ends_layer ? 1 : 0)};
  }

  // Whether only some rows are used of what this block and those after it make.
  bool uses_some(std::size_t block) const { return used_rows_ != nullptr && block == last_mixer_; }
  static bool mixes(const Block& block) { return block.mixers != nullptr && block.mixers->mixes(); }
  static const float* input_of(const Block& block, const Stream& part) {
    return block.is_unnormed ? part.x : part.input;
  }

  // All blocks from `at` on, up to what the next mixer reads.
  void advance(Place at, const Stream& part, int64_t begin) {
    for (; at.block < blocks_.size(); at = after(at)) {
      const Block& block = blocks_[at.block];
      if (block.mixers == nullptr) {
        feed_forward(part, block.network, input_of(block, part), block.post, block.after);
      } else {
        MixerRun& mixer = *run_of_[at.block];
        mixer.read(block.step, part, input_of(block, part), begin);
        if (block.beside && !uses_some(at.block))
          add_beside(*block.beside, part, input_of(block, part));
        if (block.mixers->mixes()) return;
        mixer.write(block.step, part, begin, block.post, block.after);
      }
      end_block(at, part, begin);
    }
    if (layers_.last) normalise(in_place(part), layers_.last);
  }

  void end_block(Place at, const Stream& part, int64_t begin) const {
    const Block& block = blocks_[at.block];
    if (block.in_place) normalise(in_place(part), block.in_place);
    if (block.ends_layer) ends_.end(at.layer, part, begin, block.after);
    if (block.next || block.in_place) enter(part, block.next, block.next_is_residual);
  }

  // Before the mixer has written: both read the same x.
  static void add_beside(const Beside& own, const Stream& part, const float* input) {
    if (own.norm) normalise(part, own.norm);
    feed_forward(part, own.network, input, own.post, {});
  }

  // What a block reads.
  static void enter(const Stream& part, const Norm& norm, bool is_residual) {
    if (is_residual) normalise(in_place(part), norm);
    normalise(part, is_residual ? Norm() : norm);
  }

  const std::vector<Block>& blocks_;
  const BlockLayers& layers_;
  const Stream stream_;
  const std::vector<int64_t>* const used_rows_;
  const LayerEnds& ends_;
  std::map<const Mixers*, std::unique_ptr<MixerRun>> runs_;
  std::vector<MixerRun*> run_of_;  // of each block, null for networks
  std::size_t last_mixer_ = 0;     // the last block that mixes rows
  std::vector<SequenceRange> parts_;
};

}  // namespace

std::optional<CacheNeeds> BlockLayers::cache_needs() const {
  CacheNeeds all;
  for (const Block& block : blocks) {
    if (block.mixers != nullptr && !block.mixers->add_cache_needs(block.step, all))
      return std::nullopt;
  }
  return all;
}

at::Tensor BlockLayers::run(const at::Tensor& rows, const Packing& packing, const ScoreMask& mask,
                            const LayerInputs& inputs, std::vector<at::Tensor>* outputs) const {
  const at::Tensor x = rows.contiguous(), input = norm_first_ ? at::empty_like(x) : x;
  Stream stream = {x.data_ptr<float>(), input.data_ptr<float>(), rows.size(0), width_,
                   row_regime(rows.size(0))};
  RowFormat format = RowFormat::Float32;
  for (const auto& kind : mixers_) format = either(format, kind->row_format());
  for (const Block& block : blocks) {
    if (block.mixers == nullptr) format = either(format, block.network.wide.row_format());
    if (block.beside) format = either(format, block.beside->network.wide.row_format());
  }
  const at::Tensor converted = add_converted(stream, format);
  const auto layers = static_cast<std::size_t>(
      std::count_if(blocks.begin(), blocks.end(), [](const Block& one) { return one.ends_layer; }));
  const LayerEnds ends(outputs, layers, x, packing.rows_without(inputs.kept_rows));
  BlockRun(*this, {stream, packing, mask, inputs}, ends).run();
  return norm_first_ && blocks.back().after ? input : x;
}

}  // namespace posenc::inference
