//! The runs of a figure, and the order in which they are done.

use plait_sim::base::Random;
use plait_sim::campaign::{self, Campaign};
use plait_sim::command::set_over;
use plait_sim::scenario::{Scenario, Traces, Tree};

use super::setup::Setup;
use crate::contender::{self, Contender};
use crate::error::LabError;
use crate::machine::Machine;
use crate::run::CpuScheduling;

/// From one setup's first seed to the next one's: setups that share a seed meet the same early losses, lucky or not.
const SEEDS_OF_A_SETUP: usize = 1_000;

/// One run of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// Its place in the figure, and the number of its row.
    pub(crate) index: usize,
    /// Which of the plan's setups.
    pub(crate) setup: usize,
    /// Which of its initial paths, by place.
    pub(crate) initial: usize,
    /// Which of the plan's contenders.
    pub(crate) contender: usize,
    /// Which repetition; each has a seed of its own.
    pub(crate) repetition: usize,
    /// Whether others may run at the same time.
    pub(crate) company: Company,
}

/// Whether others may run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    /// As many as there is room for.
    Beside,
    /// None at all.
    Alone,
}

/// All runs of a figure.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) setups: Vec<Setup>,
    /// Of each setup, its scenario from every initial path in every repetition.
    pub(crate) campaigns: Vec<Campaign>,
    pub(crate) contenders: Vec<Box<dyn Contender>>,
    /// In the order of their numbers.
    pub(crate) jobs: Vec<Job>,
    pub(crate) repetitions: usize,
    /// How programs are scheduled.
    pub(crate) scheduling: CpuScheduling,
    /// Those that were left out, and why.
    pub(crate) notes: Vec<String>,
}

/// What a figure is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    /// Names of contenders.
    pub(crate) contenders: &'a [String],
    /// Whether one that this machine cannot run is an error, or is left out.
    pub(crate) missing: Missing,
    /// Runs of each combination.
    pub(crate) repetitions: usize,
    /// Whether each run is done twice, beside others and alone.
    pub(crate) twice: bool,
    /// Settings over those of the setups, as `key=value`.
    pub(crate) sets: &'a [String],
    /// How programs are scheduled.
    pub(crate) scheduling: CpuScheduling,
}

/// What becomes of a contender that this machine cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    LeftOut,
    Refused,
}

impl Plan {
    /// Checks every setup and every contender.
    ///
    /// # Errors
    /// A scenario is wrong, or a contender is unknown or cannot be run.
    pub(crate) fn new(setups: Vec<Setup>, wanted: &Wanted<'_>, machine: &Machine) -> Result<Self, LabError> {
        let (mut contenders, mut notes) = (Vec::new(), Vec::new());
        for (name, contender) in wanted.contenders.iter().zip(contender::by_names(wanted.contenders)?) {
            match contender.availability(machine) {
                Ok(()) => contenders.push(contender),
                Err(why) if wanted.missing == Missing::Refused => {
                    return Err(LabError::Unavailable { name: name.clone(), why });
                }
                Err(why) => notes.push(format!("{name} was left out: {why}")),
            }
        }
        let mut campaigns = Vec::with_capacity(setups.len());
        for (at, setup) in setups.iter().enumerate() {
            let initial = setup.initial_paths.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
            let text = format!("{}[endpoints]\n[sweep]\nendpoints.initial_path = [{initial}]\n", setup.text);
            let mut tree = Tree::parse(&setup.name, &text)?;
            tree.set("seed", &(1 + at * SEEDS_OF_A_SETUP).to_string(), "the plan")?;
            set_over(&mut tree, wanted.sets)?;
            campaigns.push(Campaign::plan(tree, Traces::default(), wanted.repetitions as u64)?);
        }
        let mut jobs = Vec::new();
        let companies = if wanted.twice { &[Company::Beside, Company::Alone][..] } else { &[Company::Beside] };
        for (setup, plan) in setups.iter().enumerate() {
            for initial in 0..plan.initial_paths.len() {
                for contender in 0..contenders.len() {
                    for repetition in 0..wanted.repetitions {
                        for company in companies {
                            let (index, company) = (jobs.len(), *company);
                            jobs.push(Job { index, setup, initial, contender, repetition, company });
                        }
                    }
                }
            }
        }
        let Wanted { repetitions, scheduling, .. } = *wanted;
        Ok(Self { setups, campaigns, contenders, jobs, repetitions, scheduling, notes })
    }

    /// The run of the simulator that a job stands beside: the same scenario and seed.
    pub(crate) fn simulated(&self, job: &Job) -> Option<(&Campaign, &campaign::Job)> {
        let campaign = self.campaigns.get(job.setup)?;
        Some((campaign, campaign.jobs.get(job.initial * self.repetitions + job.repetition)?))
    }

    /// The scenario of a job, and its seed.
    ///
    /// # Errors
    /// The scenario is wrong.
    pub(crate) fn scenario(&self, job: &Job) -> Result<(Scenario, u64), LabError> {
        let (campaign, simulated) =
            self.simulated(job).ok_or_else(|| LabError::Usage("there is no such run".into()))?;
        Ok((campaign.scenario(simulated)?, simulated.seed))
    }

    /// What the emulator has to carry for a job, Mbit/s: all paths, or the initial one for a contender that has no other.
    pub(crate) fn load_mbps(&self, job: &Job) -> f64 {
        let Some(setup) = self.setups.get(job.setup) else { return 0.0 };
        let is_multipath = self.contenders.get(job.contender).is_none_or(|contender| contender.is_multipath());
        let initial = setup.initial_paths.get(job.initial).and_then(|path| setup.load_mbps.get(*path));
        initial.filter(|_| !is_multipath).copied().unwrap_or_else(|| setup.load_mbps.iter().sum())
    }

    /// The jobs as they are done: repetition after repetition; in each the setups in an order that the seed draws, and of a
    /// setup every contender from every initial path in an order of its own. So contenders take turns, and what is left
    /// when it is interrupted is whole setups.
    pub(crate) fn order(&self, seed: u64) -> Vec<Job> {
        let mut random = Random::from_u64(seed);
        let mut order = Vec::with_capacity(self.jobs.len());
        for repetition in 0..self.repetitions {
            let mut setups: Vec<usize> = (0..self.setups.len()).collect();
            shuffle(&mut setups, &mut random);
            for setup in setups {
                let of = |job: &&Job| job.repetition == repetition && job.setup == setup;
                let mut block: Vec<Job> = self.jobs.iter().filter(of).copied().collect();
                shuffle(&mut block, &mut random);
                order.extend(block);
            }
        }
        order
    }

    /// What decides the results, but for the program: for the stamp of the file.
    pub(crate) fn hash(&self) -> u64 {
        let names = self.contenders.iter().map(|contender| contender.name().to_owned());
        let texts = self.campaigns.iter().map(|campaign| format!("{:016x}", campaign.hash())).chain(names);
        campaign::hash_of(texts.chain([self.jobs.len().to_string(), self.scheduling.name().to_owned()]))
    }
}

/// In an order in which each is as likely (Fisher and Yates).
fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for at in (1..items.len()).rev() {
        items.swap(at, random.below(at as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::super::setup;
    use super::*;

    fn plan(repetitions: usize) -> Plan {
        scheduled(repetitions, CpuScheduling::RoundRobin)
    }

    fn scheduled(repetitions: usize, scheduling: CpuScheduling) -> Plan {
        let names = ["plait", "plait-single", "tcp"].map(str::to_owned);
        let wanted = Wanted {
            contenders: &names,
            missing: Missing::LeftOut,
            repetitions,
            twice: false,
            sets: &["endpoints.scheduler=ecf".to_owned()],
            scheduling,
        };
        Plan::new(setup::conext("low-bdp-no-loss", 4, None), &wanted, &Machine::look()).unwrap()
    }

    #[test]
    fn every_run_is_done_once_and_contenders_take_turns() {
        let plan = plan(2);
        assert_eq!(plan.jobs.len(), 4 * 2 * 3 * 2);
        let order = plan.order(7);
        let mut numbers: Vec<usize> = order.iter().map(|job| job.index).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..plan.jobs.len()).collect::<Vec<_>>());
        assert_eq!(order, plan.order(7));
        assert_ne!(order, plan.order(8));
        // The first half is one repetition, in blocks of one setup each.
        assert!(order.iter().take(24).all(|job| job.repetition == 0));
        assert!(order.chunks(6).all(|block| block.iter().all(|job| job.setup == block[0].setup)));
    }

    #[test]
    fn one_path_is_less_to_carry_than_two() {
        let plan = plan(1);
        for job in &plan.jobs {
            let [first, second] = plan.setups[job.setup].load_mbps;
            // plait, plait-single and tcp, from either path.
            let expected = if job.contender == 0 { first + second } else { [first, second][job.initial] };
            assert_eq!(plan.load_mbps(job), expected, "{job:?}");
        }
    }

    #[test]
    fn repetitions_have_seeds_and_initial_paths_are_set() {
        let plan = plan(2);
        for job in &plan.jobs {
            let (scenario, seed) = plan.scenario(job).unwrap();
            let expected = 1 + (job.setup * SEEDS_OF_A_SETUP + job.repetition) as u64;
            assert_eq!((scenario.endpoints.handshake.initial_path, seed), (job.initial, expected));
            assert_eq!(scenario.endpoints.scheduler.name(), "ecf");
        }
        assert_ne!(plan.hash(), self::plan(1).hash());
        // Rows of programs in real time and of others do not go on in each other's files.
        assert_ne!(plan.hash(), scheduled(2, CpuScheduling::Inherited).hash());
    }
}
