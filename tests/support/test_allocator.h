#pragma once

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <new>

namespace posenc::testing {

/// Replaces LibTorch's CPU allocator while it is alive. Records the largest request, and fails
/// requests on demand.
class TestAllocator : public c10::Allocator {
 public:
  explicit TestAllocator(std::function<bool()> refuses = [] { return false; })
      : own_(c10::GetCPUAllocator()), refuses_(std::move(refuses)) {
    c10::SetCPUAllocator(this, kPriority);
  }
  ~TestAllocator() override { c10::SetCPUAllocator(own_, kPriority); }
  TestAllocator(const TestAllocator&) = delete;
  TestAllocator& operator=(const TestAllocator&) = delete;

  c10::DataPtr allocate(size_t bytes) override {
    if (refuses_()) throw std::bad_alloc();
    for (size_t most = most_; most < bytes && !most_.compare_exchange_weak(most, bytes);) continue;
    return own_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return own_->raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    own_->copy_data(to, from, bytes);
  }

  /// Size of the largest request in bytes.
  size_t most() const { return most_; }

 private:
  static constexpr uint8_t kPriority = 1;
  c10::Allocator* own_;
  std::function<bool()> refuses_;
  std::atomic<size_t> most_{0};
};

}  // namespace posenc::testing
