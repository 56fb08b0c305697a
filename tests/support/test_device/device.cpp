// The device as LibTorch sees it: name, guard, generator and hooks.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "support/test_device/memory.h"
#include "support/test_device/operators.h"
#include "support/test_device/test_device.h"

namespace posenc::testing {
namespace {

const c10::Device kDevice(c10::DeviceType::PrivateUse1, 0);

// Work is done at once, so there is one stream, and events are always over.
class Guard : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kDevice.type(); }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const override { return stream(); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override { count_wait(); }
  void synchronizeEvent(void*) const override { count_wait(); }
  void synchronizeDevice(const c10::DeviceIndex) const override { count_wait(); }

 private:
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, kDevice); }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// A generator of the device: the CPU's algorithm with a state of its own. As on a GPU, the same
// seed gives other numbers than on the CPU.
class Generator : public c10::GeneratorImpl {
 public:
  explicit Generator(at::Generator host)
      : GeneratorImpl(kDevice, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        host_(std::move(host)) {
    host_.set_current_seed(other(seed_));
  }

  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    host_.set_current_seed(other(seed));
  }
  void set_offset(uint64_t offset) override { host_.set_offset(offset); }
  uint64_t get_offset() const override { return host_.get_offset(); }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(host_.seed());
    return seed_;
  }
  void set_state(const c10::TensorImpl& state) override {
    host_.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return host_.unsafeGetGeneratorImpl()->get_state();
  }
  at::Generator host() const { return host_; }

 private:
  static uint64_t other(uint64_t seed) { return ~seed; }
  Generator* clone_impl() const override {
    auto* const copy = new Generator(host_.clone());
    copy->seed_ = seed_;
    copy->host_.unsafeGetGeneratorImpl()->set_state(*get_state());
    return copy;
  }

  at::Generator host_;
  uint64_t seed_ = c10::default_rng_seed_val;
};

at::Generator new_generator() {
  return at::make_generator<Generator>(at::make_generator<at::CPUGeneratorImpl>());
}

class Hooks : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::Device getDeviceFromPtr(void*) const override { return kDevice; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    static const at::Generator generator = new_generator();
    return generator;
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return new_generator(); }
};

const bool registered = [] {
  static Hooks hooks;
  c10::register_privateuse1_backend("test_device");
  c10::SetAllocator(c10::DeviceType::PrivateUse1, device_allocator());
  at::RegisterPrivateUse1HooksInterface(&hooks);
  return true;
}();

}  // namespace

torch::Device test_device() {
  TORCH_CHECK(registered);
  return kDevice;
}

at::Generator host_generator(const std::optional<at::Generator>& generator) {
  if (!generator || !generator->defined()) {
    return host_generator(at::detail::getPrivateUse1Hooks().getDefaultGenerator(0));
  }
  TORCH_CHECK(generator->device() == kDevice, "Expected a generator of ", kDevice, " but found ",
              generator->device());
  return static_cast<const Generator*>(generator->unsafeGetGeneratorImpl())->host();
}

}  // namespace posenc::testing
