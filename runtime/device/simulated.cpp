//===- simulated.cpp - A machine that nobody needs to own -----------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A link carries one job at a time. Several at once would each be slower, and all would end when
// the last one does now. A job of an SSD makes way for a more urgent one at the end of a
// segment, as transfers of a run do. How fast each busy link is depends only on which links
// are busy, and which of them with what SSDs move past the host: it is worked out once
// for each such set. All starts at full speed; where a
// shared resource is asked for more than it has, those that use it share it evenly, up
// to their own speed (max-min fairness).
//
//===----------------------------------------------------------------------===//
#include "runtime/device/simulated.h"

#include "runtime/io/io.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>
#include <set>
#include <tuple>

namespace boa {
namespace {

struct Job {
  Work *work;
  double left_ns; // of the time that it takes at full speed
  int64_t bytes;
  int64_t order;  // of Submit
  bool past_host; // of an SSD and the device's memory, or of that alone
};
struct Later {
  bool operator()(const Job &a, const Job &b) const {
    return std::make_pair(a.work->priority, a.order) > std::make_pair(b.work->priority, b.order);
  }
};

/// One thing at a time.
struct Link {
  std::string name;
  double rate = 0;        // bytes in a second, where it has one
  int64_t latency_ns = 0; // after its bytes have passed
  int32_t path = -1;      // of an SSD
  bool busy = false;
  LinkUse *use = nullptr; // of the job's run
  Job job = {};
  int64_t begin_ns = 0;
  std::deque<Job> next;                                     // in the order given
  std::priority_queue<Job, std::vector<Job>, Later> sorted; // or, of an SSD, by priority
};

/// What a link takes at full speed of what it shares, as a part of all there is: where its bytes
/// are in the host's memory at one end, and where they are not.
struct User {
  size_t link;
  double by_host, past_host;
};
using Shared = std::vector<User>;

/// Of the processors, for transfers: the operating system lets nothing else starve.
constexpr double kMostForTransfers = 0.5;

/// As large as those of a run.
const int64_t kSegmentBytes = IoOptions().segment_bytes;

enum : size_t { kCompute, kOptimizer, kToDevice, kToHost, kFirstPath };

class Simulated : public SimulatedDevice {
public:
  Simulated(const Program &, const std::map<std::string, double> &kernel_seconds);

  absl::Status Start(const int64_t (&)[2], Location, DeviceListener *new_listener) override {
    listener = new_listener;
    return absl::OkStatus();
  }
  void Submit(Work &) override;
  void Cancel() override;
  int64_t Now() const override { return now; }
  bool Advance() override;
  bool HasThreads() const override { return false; }
  std::string Describe() const override { return "simulated"; }
  std::vector<LinkUse> TakeUse(int64_t run) override;

private:
  double KernelNs(int32_t kernel) const { return kernel_ns[kernel]; }
  int64_t TouchedBytes(const Work &) const;
  void Enqueue(size_t link, Work &, double ns, int64_t bytes);
  void Begin(Link &);
  void MakeWay(Link &);
  void Pass(int64_t until);
  const std::vector<double> &Speeds();
  void Grow(std::vector<double> &speed, double of_processors) const;
  void Over(Link &, const Job &, int64_t begin_ns);

  const Program &program;
  DeviceListener *listener = nullptr;
  std::vector<double> kernel_ns;
  std::vector<Link> links;
  std::map<int64_t, std::vector<LinkUse>> uses; // by run, then link
  std::vector<Shared> shared;
  Shared processors, transfers; // of kernels and updates; of what comes before them
  // Bits by link: which are busy, and of those which with what passes the host's memory by.
  struct Busy {
    uint64_t links = 0, past_host = 0;
    bool operator<(const Busy &other) const {
      return std::tie(links, past_host) < std::tie(other.links, other.past_host);
    }
    bool Has(size_t link) const { return links >> link & 1; }
    double Part(const User &user) const {
      return !Has(user.link) ? 0 : past_host >> user.link & 1 ? user.past_host : user.by_host;
    }
  };
  std::map<Busy, std::vector<double>> speeds;
  Busy busy;
  std::vector<int64_t> path_bytes; // of one transfer
  int64_t now = 0, order = 0;
  /// Bytes have passed; there when the latency has, in order of time.
  struct Landing {
    int64_t at_ns, order, begin_ns;
    size_t link;
    Job job;
    bool operator<(const Landing &other) const {
      return std::make_pair(at_ns, order) > std::make_pair(other.at_ns, other.order);
    }
  };
  std::priority_queue<Landing> landings;
};

/// Products and attention take their operations or their bytes, whichever is more. What is
/// between them takes its bytes.
double KernelSeconds(const Kernel &kernel, const MachineSettings &machine) {
  double compute = 0, operands = 0, between = 0;
  for (const auto &[format, cost] : kernel.costs) {
    const Rates rates = RatesOf(machine, format);
    compute += cost.product_flops / rates.products + cost.attention_flops / rates.attention;
    operands += cost.bytes - cost.elementwise_bytes;
    between += cost.elementwise_bytes / rates.bandwidth;
  }
  return std::max(compute, operands / RatesOf(machine, NumberFormat::f32).bandwidth) + between;
}

Simulated::Simulated(const Program &program, const std::map<std::string, double> &kernel_seconds)
    : program(program) {
  const MachineSettings &machine = program.machine;
  for (const Kernel &kernel : program.kernels) {
    const auto measured = kernel_seconds.find(kernel.name);
    kernel_ns.push_back(1e9 * (measured != kernel_seconds.end() ? measured->second
                                                                : KernelSeconds(kernel, machine)));
  }
  auto add = [&](std::string name, double rate) {
    Link &link = links.emplace_back();
    link.name = std::move(name);
    link.rate = rate;
    return links.size() - 1;
  };
  add("compute", 0);
  const bool on_device = program.UpdatesOnDevice();
  add("optimizer", double(on_device ? machine.device_bandwidth.f32 : machine.optimizer));
  add("to device", double(machine.to_device));
  add("to host", double(machine.to_host));
  Shared memory, into_device, out_of_device;
  auto uses_memory = [&](size_t link, double times) {
    if (machine.host_bandwidth > 0)
      memory.push_back({link, times * links[link].rate / double(machine.host_bandwidth), 0});
  };
  if (!on_device)
    uses_memory(kOptimizer, 1);
  if (IsSeparate(machine)) {
    uses_memory(kToDevice, 1);
    uses_memory(kToHost, 1);
    into_device.push_back({kToDevice, 1, 0});
    out_of_device.push_back({kToHost, 1, 0});
    if (machine.both_ways > 0)
      shared.push_back({{kToDevice, double(machine.to_device) / double(machine.both_ways), 0},
                        {kToHost, double(machine.to_host) / double(machine.both_ways), 0}});
  }
  if (on_device || TraitsOf(machine.device).on_host)
    processors = {{kCompute, 1, 0}, {kOptimizer, 1, 0}};
  for (size_t path = 0; path < machine.ssd.size(); ++path) {
    const SsdSettings &ssd = machine.ssd[path];
    const size_t read = add(absl::StrCat("ssd ", path, " read"), double(ssd.read));
    const size_t write = add(absl::StrCat("ssd ", path, " write"), double(ssd.write));
    for (size_t link : {read, write}) {
      links[link].path = int32_t(path);
      links[link].latency_ns = ssd.latency;
      uses_memory(link, 2);
      const int64_t most = machine.transfers > 0 ? machine.transfers : machine.checksum;
      if (TraitsOf(machine.device).on_host && most > 0) {
        const double part = links[link].rate / double(most) / kMostForTransfers;
        transfers.push_back({link, part, part});
      }
    }
    if (IsSeparate(machine) && machine.direct) {
      into_device.push_back({read, 0, double(ssd.read) / double(machine.to_device)});
      out_of_device.push_back({write, 0, double(ssd.write) / double(machine.to_host)});
    }
    if (ssd.both > 0) {
      const double of_read = double(ssd.read) / double(ssd.both);
      const double of_write = double(ssd.write) / double(ssd.both);
      shared.push_back({{read, of_read, of_read}, {write, of_write, of_write}});
    }
  }
  for (const Shared &one : {memory, transfers, into_device, out_of_device})
    shared.push_back(one);
}

//===----------------------------------------------------------------------===//
// How long it takes
//===----------------------------------------------------------------------===//

/// By an update or a norm, in the memory in which it works.
int64_t Simulated::TouchedBytes(const Work &work) const {
  if (work.kind == Work::Kind::norm)
    return work.bytes;
  return work.kind == Work::Kind::update ? UpdateBytes(program, program.groups[work.index]) : 0;
}

void Simulated::Enqueue(size_t to, Work &work, double ns, int64_t bytes) {
  Link &link = links[to];
  const bool may = (work.IsTransfer() && program.machine.direct) || work.kind == Work::Kind::zero;
  const bool past_host = may && IsSeparate(program.machine) && !work.outside &&
                         work.buffers[0].space == BOA_DEVICE; // a norm of nothing has no buffers
  const Job job{&work, ns, bytes, ++order, past_host};
  if (link.path >= 0) {
    link.sorted.push(job);
    if (link.busy && Later()(link.job, job))
      MakeWay(link);
  } else {
    link.next.push_back(job);
  }
  if (!link.busy)
    Begin(link);
}

/// Cuts the job in progress where its segment ends: the rest waits by its priority.
void Simulated::MakeWay(Link &link) {
  Job &job = link.job, rest = job;
  const double byte_ns = 1e9 / std::max(link.rate, 1.0);
  const int64_t passed = job.bytes - int64_t(std::ceil(job.left_ns / byte_ns));
  const int64_t end = (std::max<int64_t>(passed, 0) / kSegmentBytes + 1) * kSegmentBytes;
  if (end >= job.bytes)
    return;
  rest.bytes = job.bytes - end;
  rest.left_ns = double(rest.bytes) * byte_ns;
  job.bytes = end;
  job.left_ns -= rest.left_ns;
  link.use->bytes -= rest.bytes;
  link.use->full_ns -= int64_t(std::llround(rest.left_ns));
  ++rest.work->parts;
  link.sorted.push(rest);
}

void Simulated::Submit(Work &work) {
  using Kind = Work::Kind;
  auto by_rate = [&](size_t link, int64_t bytes) {
    Enqueue(link, work, 1e9 * double(bytes) / std::max(links[link].rate, 1.0), bytes);
  };
  work.begin_ns = now;
  work.parts = 0;
  if (work.IsTransfer()) {
    const int64_t chunk = program.storages[work.storage].chunk_bytes();
    const size_t first = kFirstPath + (work.kind == Kind::write);
    path_bytes.assign(program.machine.ssd.size(), 0);
    for (const Extent &extent : work.extents) {
      work.parts += path_bytes[extent.file] == 0;
      path_bytes[extent.file] += chunk;
    }
    for (size_t path = 0; path < path_bytes.size(); ++path)
      if (path_bytes[path] > 0)
        by_rate(first + 2 * path, path_bytes[path]);
    return;
  }
  if (work.kind == Kind::kernel)
    return Enqueue(kCompute, work, KernelNs(work.index), 0);
  if (!work.IsFill())
    return by_rate(kOptimizer, TouchedBytes(work));
  if (!IsSeparate(program.machine))
    return by_rate(kOptimizer, work.kind == Kind::copy ? 2 * work.bytes : work.bytes);
  const int32_t from = work.buffers.front().space, to = work.buffers.back().space;
  const bool in = work.kind == Kind::copy_in, out = work.kind == Kind::copy_out;
  if (work.kind == Kind::zero && to == BOA_DEVICE)
    return Enqueue(kToDevice, work,
                   1e9 * double(work.bytes) /
                       double(std::max<int64_t>(program.machine.device_bandwidth.f32, 1)),
                   0);
  if (!out && to == BOA_DEVICE && (in || from == BOA_HOST))
    return by_rate(kToDevice, work.bytes);
  if (!in && from == BOA_DEVICE && (out || to == BOA_HOST))
    return by_rate(kToHost, work.bytes);
  by_rate(kOptimizer, work.kind == Kind::copy ? 2 * work.bytes : work.bytes);
}

/// Lets the speeds of busy links grow together, each until it is at its full speed or something
/// that it shares is used up. Kernels and updates have this part of the processors.
void Simulated::Grow(std::vector<double> &speed, double of_processors) const {
  std::vector<bool> open(links.size());
  for (size_t i = 0; i < links.size(); ++i)
    open[i] = busy.Has(i);
  auto each_resource = [&](auto &&see) {
    for (const Shared &resource : shared)
      see(resource, 1.0);
    see(processors, of_processors);
  };
  auto used = [&](const Shared &resource) {
    double sum = 0;
    for (const User &user : resource)
      sum += busy.Part(user) * speed[user.link];
    return sum;
  };
  while (true) {
    double step = 1e300;
    bool any = false;
    for (size_t i = 0; i < links.size(); ++i)
      if (open[i]) {
        any = true;
        step = std::min(step, 1 - speed[i]);
      }
    if (!any)
      return;
    each_resource([&](const Shared &resource, double all) {
      double growing = 0;
      for (const User &user : resource)
        growing += open[user.link] ? busy.Part(user) : 0;
      if (growing > 0)
        step = std::min(step, std::max(0.0, (all - used(resource)) / growing));
    });
    for (size_t i = 0; i < links.size(); ++i)
      if (open[i])
        speed[i] += step;
    for (size_t i = 0; i < links.size(); ++i)
      if (speed[i] >= 1 - 1e-12)
        open[i] = false;
    each_resource([&](const Shared &resource, double all) {
      if (used(resource) >= all - 1e-12)
        for (const User &user : resource)
          if (busy.Part(user) > 0)
            open[user.link] = false;
    });
  }
}

/// How fast each busy link is, of its full speed.
const std::vector<double> &Simulated::Speeds() {
  auto [found, fresh] = speeds.try_emplace(busy);
  std::vector<double> &speed = found->second;
  if (!fresh)
    return speed;
  double left = 1;
  if (!transfers.empty()) {
    speed.assign(links.size(), 0);
    Grow(speed, double(links.size())); // as if kernels and updates needed no processors
    for (const User &user : transfers)
      left -= kMostForTransfers * busy.Part(user) * speed[user.link];
  }
  speed.assign(links.size(), 0);
  Grow(speed, left);
  return speed;
}

//===----------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------===//

void Simulated::Begin(Link &link) {
  const bool any = !link.next.empty() || !link.sorted.empty();
  link.busy = any;
  const uint64_t bit = uint64_t{1} << (&link - links.data());
  busy.links &= ~bit;
  busy.past_host &= ~bit;
  if (!any)
    return;
  if (link.path >= 0) {
    link.job = link.sorted.top();
    link.sorted.pop();
  } else {
    link.job = link.next.front();
    link.next.pop_front();
  }
  busy.links |= bit;
  busy.past_host |= link.job.past_host ? bit : 0;
  link.begin_ns = now;
  std::vector<LinkUse> &of = uses[link.job.work->run];
  if (of.empty())
    for (const Link &each : links)
      of.push_back({each.name, 0, 0, 0});
  link.use = &of[&link - links.data()];
  link.use->full_ns += int64_t(std::llround(link.job.left_ns));
  link.use->bytes += link.job.bytes;
}

/// Lets time pass on all links.
void Simulated::Pass(int64_t until) {
  const std::vector<double> &speed = Speeds();
  const int64_t passed = until - now;
  for (uint64_t left = busy.links; left; left &= left - 1) {
    const size_t i = size_t(__builtin_ctzll(left));
    links[i].job.left_ns -= double(passed) * speed[i];
    links[i].use->busy_ns += passed;
  }
  now = until;
}

void Simulated::Over(Link &link, const Job &job, int64_t begin_ns) {
  Work &work = *job.work;
  if (link.path >= 0) {
    listener->Moved(work, link.path, job.bytes, begin_ns, now);
    if (--work.parts > 0)
      return;
    begin_ns = work.begin_ns;
  }
  listener->Done(work, begin_ns, now, absl::OkStatus());
}

/// To the next moment at which something is over, and over with it.
bool Simulated::Advance() {
  if (busy.links == 0 && landings.empty())
    return false;
  const std::vector<double> &speed = Speeds();
  int64_t at = landings.empty() ? INT64_MAX : landings.top().at_ns;
  size_t first = links.size();
  for (uint64_t left = busy.links; left; left &= left - 1) {
    const size_t i = size_t(__builtin_ctzll(left));
    // A moment begun is a moment passed: nothing is over before its time.
    const double ns = std::ceil(std::max(links[i].job.left_ns, 0.0) / speed[i] - 1e-6);
    if (const int64_t end = now + int64_t(ns); end < at) {
      at = end;
      first = i;
    }
  }
  Pass(at);
  if (first == links.size()) {
    const Landing landed = landings.top();
    landings.pop();
    Over(links[landed.link], landed.job, landed.begin_ns);
    return true;
  }
  Link &link = links[first];
  const Job job = link.job;
  const int64_t begin_ns = link.begin_ns;
  Begin(link);
  if (link.latency_ns > 0)
    landings.push({now + link.latency_ns, ++order, begin_ns, first, job});
  else
    Over(link, job, begin_ns);
  return true;
}

/// After an error: what has not begun.
void Simulated::Cancel() {
  std::vector<Work *> over;
  for (size_t i : {kCompute, kOptimizer, kToDevice, kToHost}) {
    for (const Job &job : links[i].next)
      over.push_back(job.work);
    links[i].next.clear();
  }
  for (Work *work : over)
    listener->Done(*work, now, now, absl::CancelledError("not begun"));
}

std::vector<LinkUse> Simulated::TakeUse(int64_t run) {
  const std::vector<LinkUse> taken = uses[run];
  // What is on a link now goes on being counted.
  for (auto it = uses.begin(); it != uses.end() && it->first <= run;) {
    const bool counting = std::any_of(links.begin(), links.end(), [&](const Link &link) {
      return link.busy && link.job.work->run == it->first;
    });
    it = counting ? std::next(it) : uses.erase(it);
  }
  return taken;
}

} // namespace

absl::StatusOr<std::unique_ptr<SimulatedDevice>>
CreateSimulatedDevice(const Program &program, const std::map<std::string, double> &kernel_seconds) {
  if (absl::Status status = CheckSimulatedRates(program); !status.ok())
    return status;
  // One bit of a word for each link.
  constexpr size_t kMostPaths = 30;
  if (program.machine.ssd.size() > kMostPaths)
    return absl::UnimplementedError(absl::StrCat("cannot simulate more than ", kMostPaths,
                                                 " ssd paths: give several that are "
                                                 "alike as one of their speeds together"));
  return std::make_unique<Simulated>(program, kernel_seconds);
}

} // namespace boa
