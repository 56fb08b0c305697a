#include "core/uncopied.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/utils.h>

#include <functional>

namespace posenc {
namespace {

// Whether a tensor is reused after `use`.
bool again(const std::function<void(torch::Tensor&)>& use, torch::IntArrayRef sizes = {2, 3},
           torch::Dtype dtype = torch::kFloat) {
  LastOutput last;
  auto x = torch::zeros({2, 3});
  const auto* const impl = x.unsafeGetTensorImpl();
  last.keep(x);
  use(x);
  x = torch::Tensor();
  const auto taken = last.take(sizes, dtype);
  return taken.defined() && taken.unsafeGetTensorImpl() == impl;
}

TEST(LastOutput, IsHandedOutOnceMoreAfterOrdinaryUse) {
  EXPECT_TRUE(again([](torch::Tensor&) {}));
  EXPECT_TRUE(again([](torch::Tensor& x) { x.add_(1); }));
  EXPECT_TRUE(again([](torch::Tensor& x) { (void)x.slice(0, 1).sum(); }));
  EXPECT_TRUE(again([](torch::Tensor& x) {
    const auto matrix = torch::ones({3, 3}).requires_grad_();
    torch::matmul(x, matrix).relu().sum().backward();
  }));
}

TEST(LastOutput, WithAPastIsNot) {
  EXPECT_FALSE(again([](torch::Tensor& x) {
    x.requires_grad_();
    x.sum().backward();
    x.detach_();
  })) << "it has a gradient";
  EXPECT_FALSE(again([](torch::Tensor& x) {
    x.requires_grad_();
    x.register_hook([](const torch::Tensor&) {});
    x.requires_grad_(false);
  })) << "it has a hook";
  EXPECT_FALSE(again([](torch::Tensor& x) { x.requires_grad_(); }));
  EXPECT_FALSE(again([](torch::Tensor& x) { x._set_neg(true); }));
  EXPECT_FALSE(again([](torch::Tensor& x) { x.t_(); }, {3, 2}));
  EXPECT_FALSE(again([](torch::Tensor& x) { x.unsafeGetTensorImpl()->set_storage_offset(1); }));
  EXPECT_FALSE(again([](torch::Tensor& x) {
    x.storage().unsafeGetStorageImpl()->set_nbytes(0);
    x.storage().unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr());
  })) << "its memory was given back";
  EXPECT_FALSE(again([](torch::Tensor& x) {
    x.unsafeGetTensorImpl()->set_storage_keep_dtype(torch::zeros({2}).storage());
  })) << "its memory is too small";
}

TEST(LastOutput, WithAnotherHolderIsNot) {
  torch::Tensor held;
  EXPECT_FALSE(again([&](torch::Tensor& x) { held = x; }));
  EXPECT_FALSE(again([&](torch::Tensor& x) { held = x.view({6}); }));
  EXPECT_FALSE(again([&](torch::Tensor& x) { held = x.detach(); }));
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> weak(
      torch::zeros({1}).getIntrusivePtr());
  EXPECT_FALSE(again([&](torch::Tensor& x) { weak = decltype(weak)(x.getIntrusivePtr()); }));
}

TEST(LastOutput, DoesNotReuseOtherSizesOrTypes) {
  const auto unused = [](torch::Tensor&) {};
  EXPECT_FALSE(again(unused, {3, 2}));
  EXPECT_FALSE(again(unused, {2, 3}, torch::kHalf));
  LastOutput last;
  last.keep(torch::zeros({2, 3}));
  const c10::InferenceMode guard;
  EXPECT_FALSE(last.take({2, 3}, torch::kFloat).defined());
}

}  // namespace
}  // namespace posenc
