// After a call that throws, the next call is correct: an exception from the caller, an invalid id,
// or a failed allocation, on this thread or another.

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "inference/models.h"
#include "posenc/inference/freeze.h"
#include "support/compare.h"
#include "support/test_allocator.h"
#include "support/threads.h"
#include "transformer/tiny.h"

namespace {

std::atomic<int64_t> allocations_left{-1};  // before one fails; negative: none fails

bool is_refused() { return allocations_left >= 0 && allocations_left.fetch_sub(1) == 0; }

}  // namespace

// Memory with more than pointer alignment is the library's scratch memory.
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  const auto line = static_cast<std::size_t>(alignment);
  void* const memory =
      is_refused() ? nullptr : std::aligned_alloc(line, (bytes + line - 1) / line * line);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace posenc::testing {
namespace {

// All results of a frozen model, as one tensor.
torch::Tensor all_of(Transformer model, const FrozenTransformer& frozen, const torch::Tensor& src,
                     int64_t beams) {
  const torch::NoGradGuard no_grad;
  const auto mask = AttentionMask::padding(src, kPad);
  const auto memory = frozen.encode(src, mask);
  std::vector<torch::Tensor> parts = {
      memory.flatten(), frozen.decode(src, memory, AttentionMask::causal(), mask).flatten()};
  const auto options =
      GenerateOptions(kBegin, kEnd).max_new_tokens(12).num_beams(beams).num_return_sequences(beams);
  for (const auto& found :
       {generate(frozen, src, mask, options), generate(*model, src, mask, options)})
    for (const auto& source : found)
      for (const auto& one : source)
        parts.push_back(torch::tensor(one.score, torch::kFloat).unsqueeze(0));
  return torch::cat(parts);
}

// Keeps oneDNN out of matrix products. On ARM64, where LibTorch uses it for float32, one that runs
// out of memory does not throw: LibTorch then multiplies by BLAS for the rest of the process.
class WithoutOneDnn {
 public:
  WithoutOneDnn() { at::globalContext().setUserEnabledMkldnn(false); }
  ~WithoutOneDnn() { at::globalContext().setUserEnabledMkldnn(before_); }
  WithoutOneDnn(const WithoutOneDnn&) = delete;
  WithoutOneDnn& operator=(const WithoutOneDnn&) = delete;

 private:
  const bool before_ = at::globalContext().userEnabledMkldnn();
};

class AfterErrors : public ::testing::Test {
 protected:
  Dice dice{11};
  Transformer model = any_model(dice, 11);
  FrozenTransformer frozen = freeze(model);
  torch::Tensor large = any_ids(dice, 14, 30, true), small = any_ids(dice, 2, 3, true);
};

TEST_F(AfterErrors, ExceptionInACallback) {
  const auto expected = all_of(model, frozen, large, 3);
  for (const int64_t beams : {1, 3})
    for (const int64_t step : {1, 4}) {
      const auto options = GenerateOptions(kBegin, kEnd)
                               .eos_ids({})
                               .max_new_tokens(9)
                               .num_beams(beams)
                               .progress([&](const GenerateProgress& progress) -> bool {
                                 if (progress.step == step) throw std::runtime_error("enough");
                                 return true;
                               });
      EXPECT_THROW(generate(frozen, large, {}, options), std::runtime_error);
      EXPECT_THROW(generate(*model, large, {}, options), std::runtime_error);
      EXPECT_TRUE(bit_equal(all_of(model, frozen, large, 3), expected));
    }
}

TEST_F(AfterErrors, InvalidId) {
  const auto wrong = large.clone();
  wrong[3][0] = 1000;
  for (const int threads : {1, 3}) {
    const Threads set(threads);  // the plain model's bits depend on this
    const auto expected = all_of(model, frozen, large, 3);
    EXPECT_THROW(frozen.encode(wrong), c10::IndexError);
    EXPECT_THROW(generate(frozen, wrong, {}, GenerateOptions(kBegin, kEnd).max_new_tokens(3)),
                 c10::IndexError);
    EXPECT_TRUE(bit_equal(all_of(model, frozen, large, 3), expected));
  }
}

// Fails the first allocation, then the second, and so on, of a large call. A small call follows on
// the same thread, with the scratch memory that the failure left, and then the large one again.
TEST_F(AfterErrors, FailedAllocations) {
  const WithoutOneDnn without;
  const TestAllocator allocator(is_refused);
  for (const int threads : {1, 2}) {
    const Threads set(threads);
    const auto few = all_of(model, frozen, small, 2), many = all_of(model, frozen, large, 3);
    int64_t refused = 0;
    // Each attempt runs on its own thread, and so with new scratch memory. Some allocations are
    // skipped, because most are alike.
    for (int64_t attempt = 0, done = 0; done == 0; attempt += 1 + attempt / 8) {
      std::thread([&] {
        at::set_num_threads(threads);
        allocations_left = attempt;
        try {
          all_of(model, frozen, large, 3);
          done = 1;
        } catch (const std::bad_alloc&) {
          ++refused;
        }
        allocations_left = -1;
        EXPECT_TRUE(bit_equal(all_of(model, frozen, small, 2), few)) << attempt;
        EXPECT_TRUE(bit_equal(all_of(model, frozen, large, 3), many)) << attempt;
      }).join();
    }
    EXPECT_GT(refused, 20);
  }
}

TEST_F(AfterErrors, FreezeOutOfMemory) {
  const auto expected = all_of(model, frozen, small, 2);
  const TestAllocator allocator(is_refused);
  for (const auto gemm : {GemmBackend::Native, GemmBackend::Autotune})
    for (int64_t attempt = 0; attempt < 3; ++attempt) {
      allocations_left = attempt;
      try {
        freeze(model, FreezeOptions().gemm(gemm));
      } catch (const std::bad_alloc&) {
      }
      allocations_left = -1;
      EXPECT_TRUE(bit_equal(all_of(model, freeze(model), small, 2), expected));
    }
}

// A decoder's cache with two tokens, and the result for the third one.
class AfterErrorsOfACache : public ::testing::Test {
 protected:
  torch::Tensor third(DecoderCache of) { return model->step(tgt.narrow(1, 2, 1), of); }

  // Fails each allocation of `change` in turn; after each failure the cache must be unchanged.
  void refuse_each(const std::function<void(DecoderCache&)>& change) {
    const auto before = third(cache);
    const TestAllocator allocator(is_refused);
    int64_t refused = 0;
    for (bool done = false; !done;) {
      allocations_left = refused;
      try {
        change(cache);
        done = true;
      } catch (const std::bad_alloc&) {
        ++refused;
      }
      allocations_left = -1;
      if (done) break;
      EXPECT_EQ(cache.length(), 2);
      EXPECT_TRUE(bit_equal(third(cache), before)) << refused;
    }
    EXPECT_GT(refused, 3);
  }

  const torch::NoGradGuard no_grad;
  Transformer model = tiny_model();
  torch::Tensor src = torch::tensor({{3, 4, 5, 6}, {7, 8, 0, 0}, {9, 0, 0, 0}});
  torch::Tensor tgt = torch::tensor({{1, 3, 4}, {1, 5, 6}, {1, 7, 8}});
  AttentionMask mask = AttentionMask::padding(src, kPad);
  DecoderCache cache = [this] {
    auto made = model->start(model->encode(src, mask), 5, mask);
    model->step(tgt.narrow(1, 0, 2), made);
    return made;
  }();
};

TEST_F(AfterErrorsOfACache, FailingStep) {
  const auto expected = third(cache);
  torch::Tensor logits;
  refuse_each([&](DecoderCache& of) { logits = model->step(tgt.narrow(1, 2, 1), of); });
  EXPECT_TRUE(bit_equal(logits, expected));
  EXPECT_EQ(cache.length(), 3);
}

TEST_F(AfterErrorsOfACache, FailingSelect) {
  for (const auto& rows : {torch::tensor({2, 0}), torch::tensor({1})}) {
    const auto whole = cache;
    const auto expected = third(cache).index_select(0, rows);
    refuse_each([&](DecoderCache& of) { of.select(rows); });
    EXPECT_TRUE(within(Op::Layers, model->step(tgt.index_select(0, rows).narrow(1, 2, 1), cache),
                       expected));
    cache = whole;
  }
  EXPECT_THROW(cache.select(torch::tensor({0, 1, 3})), c10::IndexError);
  EXPECT_THROW(cache.select(torch::tensor({0, 3})), c10::IndexError);
  EXPECT_EQ(third(cache).size(0), 3);
}

// The first layer has seen the token; the second one is of the wrong class.
TEST_F(AfterErrorsOfACache, FailingLayer) {
  const auto expected = third(cache);
  const auto layers = model->decoder->layers;
  model->decoder->layers = torch::nn::ModuleList(layers->ptr(0), torch::nn::Linear(8, 8).ptr());
  EXPECT_ERROR(third(cache), c10::ValueError, "each layer must be a TransformerDecoderLayer");
  EXPECT_ERROR(model->step(tgt.narrow(1, 2, 1), cache), c10::ValueError, "Got for layer 1");
  model->decoder->layers = layers;
  EXPECT_EQ(cache.length(), 2);
  EXPECT_TRUE(bit_equal(third(cache), expected));
  DecoderCache none;
  EXPECT_ERROR(model->step(tgt, none), c10::ValueError, "the cache must be start()'s, of 2 layers");
}

}  // namespace
}  // namespace posenc::testing
