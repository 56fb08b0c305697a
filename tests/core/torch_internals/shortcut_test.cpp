// The checks before a shortcut past ATen, compared with ATen's behaviour. A new LibTorch may change
// the dispatch keys of a plain tensor and of a plain thread (everything would then take the slow
// path, or a mode would be missed), the counting of writes, and the metadata of a tensor.

#include "core/torch_internals/shortcut.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/autocast_mode.h>
#include <ATen/functorch/DynamicLayer.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/utils.h>

namespace posenc::torch_internals {
namespace {

TEST(DispatchesPlainly, TrueInOrdinaryThreads) {
  EXPECT_TRUE(dispatches_plainly()) << "LibTorch has another set of keys than this library knows";
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(dispatches_plainly());
  const c10::InferenceMode inference;
  EXPECT_TRUE(dispatches_plainly());
}

TEST(DispatchesPlainly, FalseWithModesAndTransforms) {
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const bool autocast = dispatches_plainly();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_FALSE(autocast);

  bool traced = true;
  torch::jit::tracer::trace(
      {torch::ones(2)},
      [&](torch::jit::Stack inputs) -> torch::jit::Stack {
        traced = dispatches_plainly();
        return inputs;
      },
      [](const torch::autograd::Variable&) { return ""; });
  EXPECT_FALSE(traced);

  namespace functorch = at::functorch;
  functorch::initAndPushDynamicLayer(functorch::TransformType::Vmap, c10::SymInt(2),
                                     functorch::RandomnessType::Error);
  const bool transformed = dispatches_plainly();
  functorch::popDynamicLayerAndDeleteMetadata();
  EXPECT_FALSE(transformed);
  EXPECT_TRUE(dispatches_plainly());
}

TEST(IsPlain, TrueForPlainCpuTensors) {
  const auto x = torch::ones({2, 3});
  EXPECT_TRUE(is_plain(x)) << "LibTorch's tensors have another key than this library knows";
  EXPECT_TRUE(is_plain(x.t()));
  EXPECT_TRUE(is_plain(x.to(torch::kHalf)));
  EXPECT_TRUE(is_plain(torch::ones(3).requires_grad_()));
  EXPECT_TRUE(is_plain(torch::ones(3).requires_grad_() * 2));
  {
    const c10::InferenceMode inference;
    EXPECT_TRUE(is_plain(torch::ones(3)));
  }
  EXPECT_FALSE(is_plain(x._neg_view()));
  EXPECT_FALSE(is_plain(torch::ones(3, torch::kComplexFloat).conj()));
  EXPECT_FALSE(is_plain(x.to_sparse()));
  EXPECT_FALSE(is_plain(x.to(torch::kMeta)));
  EXPECT_FALSE(is_plain(torch::quantize_per_tensor(x, 1.0, 0, torch::kQInt8)));
}

TEST(IsPlain, FalseWithAForwardGradient) {
  const auto x = torch::ones(3), base = torch::zeros(3), view = base.slice(0);
  const auto level = torch::autograd::ForwardADLevel::get_next_idx();
  const auto dual = at::_make_dual(x, x, static_cast<int64_t>(level));
  EXPECT_FALSE(is_plain(dual));
  EXPECT_TRUE(is_plain(view));
  base.copy_(dual);
  EXPECT_FALSE(is_plain(view)) << "its base has got one";
  torch::autograd::ForwardADLevel::release_idx(level);
  EXPECT_TRUE(is_plain(view));
}

TEST(IsRecorded, TrueIfTheResultRequiresAGradient) {
  const auto same = [](const torch::Tensor& x) {
    EXPECT_EQ(is_recorded(x), (x * 2).requires_grad());
  };
  const auto leaf = torch::ones(3).requires_grad_(), constant = torch::ones(3);
  same(leaf), same(constant);
  {
    const torch::NoGradGuard guard;
    same(leaf);
  }
  {
    const c10::InferenceMode guard;
    same(leaf);
  }
  {
    const at::AutoDispatchBelowAutograd guard;
    same(leaf);
  }
}

TEST(Shortcut, NamesTheOriginOfATensor) {
  EXPECT_EQ(origin_of(torch::ones({2}).requires_grad_().exp()), "ExpBackward0");
}

TEST(WriteViolation, TensorsThatAtenDoesNotWriteTo) {
  const auto refused = [](const torch::Tensor& x) {
    EXPECT_NE(write_violation(x), nullptr);
    EXPECT_THROW(note_write(x), c10::Error);
    EXPECT_THROW(x.fill_(1), c10::Error);
  };
  torch::Tensor made_in_inference;
  {
    const c10::InferenceMode guard;
    made_in_inference = torch::ones(3);
    EXPECT_EQ(write_violation(made_in_inference), nullptr);
  }
  EXPECT_NE(write_violation(made_in_inference), nullptr);
  EXPECT_THROW(made_in_inference.requires_grad_().fill_(1), c10::Error);
  refused(torch::ones(3).requires_grad_());
  EXPECT_NE(write_violation(torch::ones(1).expand(3)), nullptr);
  EXPECT_THROW(torch::ones(1).expand(3).add_(1), c10::Error);
  EXPECT_EQ(write_violation(torch::ones(3)), nullptr);
  const torch::NoGradGuard guard;
  EXPECT_EQ(write_violation(torch::ones(3).requires_grad_()), nullptr);
}

TEST(NoteWrite, MovesTheVersionAsAnOperationInPlaceDoes) {
  const auto ours = torch::ones({2, 3}), theirs = torch::ones({2, 3});
  const auto view = ours.t();
  note_write(ours);
  theirs.fill_(1);
  EXPECT_EQ(ours._version(), theirs._version());
  EXPECT_EQ(view._version(), ours._version());
  const auto x = torch::ones({2, 3}).requires_grad_();
  const auto out = (x * ours).sum();
  note_write(ours);
  EXPECT_THROW(out.backward(), c10::Error) << "autograd does not notice";
}

// ATen gives the same answer for two tensors without gaps.
TEST(ShareMemory, AgreesWithAtenForDenseTensors) {
  const auto x = torch::arange(12);
  const std::vector<torch::Tensor> parts = {
      x, x.slice(0, 0, 6), x.slice(0, 6), x.slice(0, 5, 7), x.clone(), x.slice(0, 3, 3)};
  for (const auto& a : parts) {
    for (const auto& b : parts) {
      const auto status = at::get_overlap_status(a, b);
      const bool expected =
          status != at::MemOverlapStatus::No && a.numel() > 0;  // ATen: x overlaps itself
      EXPECT_EQ(share_memory(a, b), expected) << a.sizes() << b.sizes();
    }
  }
  EXPECT_FALSE(share_memory(x, torch::Tensor()));
}

TEST(IsUnobservable, UntilItIsDistinguishable) {
  const auto make = [] { return torch::ones({2, 3}); };
  EXPECT_TRUE(is_unobservable(make()))
      << "LibTorch's new tensors carry more than this library knows";
  auto x = make();
  {
    const auto second = x;
    EXPECT_FALSE(is_unobservable(x));
  }
  EXPECT_TRUE(is_unobservable(x));
  {
    const auto view = x.t();
    EXPECT_FALSE(is_unobservable(x));
  }
  EXPECT_TRUE(is_unobservable(x));
  {
    const c10::Storage memory = x.storage();
    EXPECT_FALSE(is_unobservable(x)) << "its memory has another holder";
  }
  EXPECT_TRUE(is_unobservable(x));
  const c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> weak(
      x.getIntrusivePtr());
  EXPECT_FALSE(is_unobservable(x)) << "a weak reference";
  x = make();
  x.requires_grad_();
  EXPECT_FALSE(is_unobservable(x)) << "autograd's data";
  x = make();
  x.slice(0, 1).unsafeGetTensorImpl();
  EXPECT_TRUE(is_unobservable(x));
  x = x.slice(0, 1);
  EXPECT_FALSE(is_unobservable(x)) << "a part of its storage";
  {
    const c10::InferenceMode guard;  // views have no autograd data
    x = make();
    x = x.slice(0, 1);
  }
  EXPECT_FALSE(is_unobservable(x)) << "a part of its storage, of inference mode";
  x = make();
  x.storage().unsafeGetStorageImpl()->set_nbytes(4);
  EXPECT_FALSE(is_unobservable(x)) << "a storage that was shrunk";
}

}  // namespace
}  // namespace posenc::torch_internals
